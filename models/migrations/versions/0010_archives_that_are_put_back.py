"""Let a damaged archive be put back under another key, and drop rows only in the transaction that read their archives

Revision: 0010. What an archive is stays written: its hash, its length and its number of tickets. Where its file lies may
change, to a file that is there and whole.
"""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_GUARDS = """
DROP TRIGGER kept ON ticket_archives;
CREATE TRIGGER kept BEFORE DELETE OR TRUNCATE ON ticket_archives
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewriting();

-- A damaged file is never written over. Its archive is put back as a file beside it, named by the same hash.
CREATE FUNCTION refuse_other_archive() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF to_jsonb(NEW) - 'key' IS DISTINCT FROM to_jsonb(OLD) - 'key' OR position(OLD.sha256 IN NEW.key) = 0 THEN
        RAISE EXCEPTION 'ticket_archives is only ever added to' USING ERRCODE = 'restrict_violation';
    END IF;
    IF NEW.store = 'postgres' AND NEW.bytes IS DISTINCT FROM
        (SELECT sum(octet_length(content)) FROM archive_pieces WHERE key = NEW.key) THEN
        RAISE EXCEPTION 'there is no whole file %', NEW.key USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER moved BEFORE UPDATE ON ticket_archives FOR EACH ROW EXECUTE FUNCTION refuse_other_archive();
"""
_DROP = """
CREATE OR REPLACE FUNCTION drop_tickets(asked bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    needed text := tickets_are_needed(asked);
    rows_of regclass := to_regclass(format('tickets_r%s', asked));
    {unread}
BEGIN
    IF needed IS NOT NULL THEN
        RAISE EXCEPTION '%', needed USING ERRCODE = 'restrict_violation';
    END IF;
    IF EXISTS (SELECT FROM pg_inherits WHERE inhrelid = rows_of) THEN
        RAISE EXCEPTION 'the tickets of round % are not detached', asked USING ERRCODE = 'restrict_violation';
    END IF;
    {read}
    INSERT INTO ticket_drops (round_id, tickets, archived)
        SELECT asked, coalesce(sum(p.ticket_count), 0), coalesce(sum(a.tickets), 0)
        FROM participations p LEFT JOIN ticket_archives a USING (round_id, operator_id) WHERE p.round_id = asked;
    IF rows_of IS NOT NULL THEN
        EXECUTE format('DROP TABLE %s', rows_of);
    END IF;
END $$;
"""
# And, from now on: every archive that will be all there is was read by whoever drops the rows, since it began.
_UNREAD = "unread text;"
_READ = """SELECT m.operator_id INTO unread FROM manifests m JOIN archive_checks c USING (round_id, operator_id)
        WHERE m.round_id = asked AND m.agreed AND c.checked_at < transaction_timestamp()
        ORDER BY m.operator_id LIMIT 1;
    IF unread IS NOT NULL THEN
        RAISE EXCEPTION 'the archive of % in round % was not read in this transaction', unread, asked
            USING ERRCODE = 'restrict_violation';
    END IF;
"""

_BEFORE = """
DROP TRIGGER moved ON ticket_archives;
DROP FUNCTION refuse_other_archive;
DROP TRIGGER kept ON ticket_archives;
CREATE TRIGGER kept BEFORE UPDATE OR DELETE OR TRUNCATE ON ticket_archives
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewriting();
"""


def upgrade() -> None:
    op.execute(_GUARDS)
    op.execute(_DROP.format(unread=_UNREAD, read=_READ))


def downgrade() -> None:
    op.execute(_BEFORE)
    op.execute(_DROP.format(unread="", read=""))
