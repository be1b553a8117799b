"""Let the rows of finished rounds go once their archives were checked

Revision: 0008. Only adds. Nothing goes before ROUND_RETENTION says after how many days.
"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_IDENTIFIER = sa.Text(collation="C")
_MOMENT = sa.TIMESTAMP(timezone=True)

_GUARDS = """
CREATE TRIGGER kept BEFORE UPDATE OR DELETE OR TRUNCATE ON ticket_drops
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewriting();

CREATE FUNCTION finished_rounds_with_rows(days integer) RETURNS SETOF bigint LANGUAGE sql STABLE AS $$
    SELECT r.id FROM rounds r
    WHERE r.state IN ('CLOSED', 'FAILED')
        AND NOT EXISTS (SELECT FROM ticket_drops d WHERE d.round_id = r.id)
        AND (SELECT max(t.at) FROM round_transitions t WHERE t.round_id = r.id) < now() - make_interval(days => days)
$$;

-- Why the rows of a round's tickets have to stay; NULL when they may go.
CREATE FUNCTION tickets_are_needed(asked bigint) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    reached round_state := (SELECT state FROM rounds WHERE id = asked);
    missing text;
BEGIN
    IF reached IS NULL THEN
        RETURN format('there is no round %s', asked);
    END IF;
    IF reached NOT IN ('CLOSED', 'FAILED') THEN
        RETURN format('round %s is %s', asked, reached);
    END IF;
    IF EXISTS (SELECT FROM round_pieces WHERE round_id = asked AND due_at IS NOT NULL) THEN
        RETURN format('round %s has work left', asked);
    END IF;
    -- Who was recounted and agreed is in the sealed set, or was about to be. Everybody else's tickets are in no set.
    SELECT m.operator_id INTO missing FROM manifests m
        LEFT JOIN ticket_archives a USING (round_id, operator_id)
        LEFT JOIN archive_checks c ON (c.round_id, c.operator_id, c.sha256) = (a.round_id, a.operator_id, a.sha256)
        WHERE m.round_id = asked AND m.agreed AND (a.tickets IS DISTINCT FROM m.counted OR c.intact IS NOT TRUE)
        ORDER BY m.operator_id LIMIT 1;
    IF missing IS NOT NULL THEN
        RETURN format('the archive of %s in round %s was not found whole', missing, asked);
    END IF;
    RETURN NULL;
END $$;

-- The only way by which rows go. They must have been detached before: dropping them then locks nothing but them.
CREATE FUNCTION drop_tickets(asked bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    needed text := tickets_are_needed(asked);
    rows_of regclass := to_regclass(format('tickets_r%s', asked));
BEGIN
    IF needed IS NOT NULL THEN
        RAISE EXCEPTION '%', needed USING ERRCODE = 'restrict_violation';
    END IF;
    IF EXISTS (SELECT FROM pg_inherits WHERE inhrelid = rows_of) THEN
        RAISE EXCEPTION 'the tickets of round % are not detached', asked USING ERRCODE = 'restrict_violation';
    END IF;
    INSERT INTO ticket_drops (round_id, tickets, archived)
        SELECT asked, coalesce(sum(p.ticket_count), 0), coalesce(sum(a.tickets), 0)
        FROM participations p LEFT JOIN ticket_archives a USING (round_id, operator_id) WHERE p.round_id = asked;
    IF rows_of IS NOT NULL THEN
        EXECUTE format('DROP TABLE %s', rows_of);
    END IF;
END $$;

INSERT INTO chores (id, due_at, ring_at)
VALUES ('drop_tickets', now() + interval '10 minutes', now() + interval '10 minutes');
"""


def upgrade() -> None:
    op.create_table(
        "archive_checks",
        sa.Column("round_id", sa.BigInteger(), nullable=False),
        sa.Column("operator_id", _IDENTIFIER, nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("intact", sa.Boolean(), nullable=False),
        sa.Column("checked_at", _MOMENT, server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["round_id", "operator_id"],
            ["ticket_archives.round_id", "ticket_archives.operator_id"],
            name=op.f("fk_archive_checks_round_id_operator_id"),
        ),
        sa.PrimaryKeyConstraint("round_id", "operator_id", name=op.f("pk_archive_checks")),
    )
    op.create_table(
        "ticket_drops",
        sa.Column("round_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("tickets", sa.BigInteger(), nullable=False),
        sa.Column("archived", sa.BigInteger(), nullable=False),
        sa.Column("dropped_at", _MOMENT, server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name=op.f("fk_ticket_drops_round_id")),
        sa.PrimaryKeyConstraint("round_id", name=op.f("pk_ticket_drops")),
    )
    op.execute(_GUARDS)


def downgrade() -> None:
    op.execute("DELETE FROM chores WHERE id = 'drop_tickets'")
    op.execute("DROP FUNCTION drop_tickets, tickets_are_needed, finished_rounds_with_rows")
    op.drop_table("ticket_drops")
    op.drop_table("archive_checks")
