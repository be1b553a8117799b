"""Keep each operator's sealed tickets in an archive, one immutable file

Revision: 0005. Rounds sealed before have none; their tickets are read from their rows, as they always were.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_IDENTIFIER = sa.Text(collation="C")
_MOMENT = sa.TIMESTAMP(timezone=True)

_GUARDS = """
-- What is in the pieces is compressed already. Stored as it is, a part of a piece is read without the rest of it.
ALTER TABLE archive_pieces ALTER COLUMN content SET STORAGE EXTERNAL;

CREATE TRIGGER kept BEFORE UPDATE OR DELETE OR TRUNCATE ON ticket_archives
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewriting();

-- A file is put once and whole: every piece has the length that the file's own length leaves for it.
CREATE FUNCTION refuse_misfit_piece() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    rest bigint := (SELECT bytes FROM archive_files WHERE key = NEW.key) - NEW.place * 1048576;
BEGIN
    IF rest IS NULL OR rest <= 0 OR octet_length(NEW.content) <> least(rest, 1048576) THEN
        RAISE EXCEPTION 'piece % does not fit into %', NEW.place, NEW.key USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER fits BEFORE INSERT ON archive_pieces FOR EACH ROW EXECUTE FUNCTION refuse_misfit_piece();

-- A piece goes with its file only: the foreign key's cascade is one level down.
CREATE FUNCTION refuse_piecemeal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'DELETE' OR pg_trigger_depth() < 2 THEN
        RAISE EXCEPTION 'an archive is never altered' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER kept BEFORE UPDATE OR DELETE OR TRUNCATE ON archive_pieces
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_piecemeal();

-- A file goes when no archive names it: what a change of stores or an older software left behind.
CREATE FUNCTION refuse_loss_of_archive() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        RAISE EXCEPTION 'an archive is never altered' USING ERRCODE = 'restrict_violation';
    END IF;
    IF EXISTS (SELECT FROM ticket_archives WHERE store = 'postgres' AND key = OLD.key) THEN
        RAISE EXCEPTION 'an archive that is named is never deleted' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN OLD;
END $$;
CREATE TRIGGER kept BEFORE UPDATE OR DELETE ON archive_files FOR EACH ROW EXECUTE FUNCTION refuse_loss_of_archive();
CREATE TRIGGER never_emptied BEFORE TRUNCATE ON archive_files FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewriting();
"""


def upgrade() -> None:
    op.create_table(
        "ticket_archives",
        sa.Column("round_id", sa.BigInteger(), nullable=False),
        sa.Column("operator_id", _IDENTIFIER, nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("tickets", sa.BigInteger(), nullable=False),
        sa.Column("store", sa.Text(), nullable=False),
        sa.Column("key", _IDENTIFIER, nullable=False),
        sa.Column("created_at", _MOMENT, server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["round_id", "operator_id"],
            ["manifests.round_id", "manifests.operator_id"],
            name=op.f("fk_ticket_archives_round_id_operator_id"),
        ),
        sa.PrimaryKeyConstraint("round_id", "operator_id", name=op.f("pk_ticket_archives")),
        sa.UniqueConstraint("store", "key", name=op.f("uq_ticket_archives_store_key")),
    )
    op.create_table(
        "archive_files",
        sa.Column("key", _IDENTIFIER, nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("created_at", _MOMENT, server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_archive_files")),
    )
    op.create_table(
        "archive_pieces",
        sa.Column("key", _IDENTIFIER, nullable=False),
        sa.Column("place", sa.BigInteger(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint("place >= 0", name=op.f("ck_archive_pieces_counted_from_zero")),
        sa.ForeignKeyConstraint(["key"], ["archive_files.key"], name=op.f("fk_archive_pieces_key"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("key", "place", name=op.f("pk_archive_pieces")),
    )
    op.execute(_GUARDS)


def downgrade() -> None:
    op.drop_table("archive_pieces")
    op.drop_table("archive_files")
    op.drop_table("ticket_archives")
    op.execute("DROP FUNCTION refuse_misfit_piece, refuse_piecemeal, refuse_loss_of_archive")
