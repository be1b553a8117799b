"""Match tickets in shards, and check winners once a statement

Revision: 0006. Pieces of work that are planned already stay as they are.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_FOREIGN_KEYS = {
    "fk_winners_round_id": ("draws", ["round_id"]),
    "fk_winners_round_id_operator_id": ("participations", ["round_id", "operator_id"]),
}

_GUARDS = """
-- What two foreign keys asked once a row is asked once a statement. The other direction needs no question: draws and
-- manifests are never deleted, and neither is ever given another key.
CREATE FUNCTION refuse_stray_winner() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM (SELECT DISTINCT round_id, operator_id FROM fresh) AS fresh
        LEFT JOIN manifests USING (round_id, operator_id)
        LEFT JOIN draws USING (round_id)
        WHERE manifests.round_id IS NULL OR draws.round_id IS NULL
    ) THEN
        RAISE EXCEPTION 'a winner needs a draw and its operator a manifest' USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER known AFTER INSERT ON winners REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_stray_winner();

CREATE FUNCTION refuse_moved_winner() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a win never becomes another one' USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER stays BEFORE UPDATE OF round_id, tier, operator_id, ticket_id ON winners
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_moved_winner();

-- Every winner is written again when the prizes are known. Where there is room beside it, no index has to be told.
ALTER TABLE winners SET (fillfactor = 40);
"""


def upgrade() -> None:
    op.alter_column("round_pieces", "operator_id", existing_type=sa.Text(collation="C"), nullable=True)
    op.add_column("round_pieces", sa.Column("shard", sa.BigInteger(), nullable=True))
    op.add_column(
        "round_pieces", sa.Column("part", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True)
    )
    op.create_unique_constraint(
        op.f("uq_round_pieces_round_id_kind_shard"), "round_pieces", ["round_id", "kind", "shard"]
    )
    op.create_check_constraint(
        op.f("ck_round_pieces_one_subject"),
        "round_pieces",
        "num_nonnulls(operator_id, shard) = 1 AND (shard IS NULL) = (part IS NULL)",
    )
    op.create_check_constraint(
        op.f("ck_round_pieces_shard_with_a_result"),
        "round_pieces",
        "shard IS NULL OR due_at IS NOT NULL OR result <> '{}'",
    )
    for name in _FOREIGN_KEYS:
        op.drop_constraint(op.f(name), "winners", type_="foreignkey")
    op.execute(_GUARDS)


def downgrade() -> None:
    op.execute(
        "ALTER TABLE winners RESET (fillfactor); DROP TRIGGER known ON winners; DROP TRIGGER stays ON winners; "
        "DROP FUNCTION refuse_stray_winner, refuse_moved_winner"
    )
    for name, (table, columns) in _FOREIGN_KEYS.items():
        op.create_foreign_key(op.f(name), "winners", table, columns, columns)
    op.drop_constraint(op.f("ck_round_pieces_shard_with_a_result"), "round_pieces")
    op.drop_constraint(op.f("ck_round_pieces_one_subject"), "round_pieces")
    op.drop_constraint(op.f("uq_round_pieces_round_id_kind_shard"), "round_pieces")
    op.drop_column("round_pieces", "part")
    op.drop_column("round_pieces", "shard")
    op.alter_column("round_pieces", "operator_id", existing_type=sa.Text(collation="C"), nullable=False)
