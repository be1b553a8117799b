"""Let who writes to a round share a lock of its own with the others, instead of the round's row

Revision: 0011. A row that somebody always shares is never free: while operators went on sending, nobody could fail the
round, and whoever asked for it waited until sales ended. Of an advisory lock PostgreSQL keeps the order: who wants it alone
waits for those that have it, and who comes later waits behind.
"""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_TICKETS = """
CREATE OR REPLACE FUNCTION refuse_late_tickets() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    current record;
BEGIN
    IF TG_OP <> 'INSERT' THEN
        RAISE EXCEPTION 'tickets are never altered or deleted' USING ERRCODE = 'restrict_violation';
    END IF;
    {hold}
    SELECT state, seal_at INTO current FROM rounds WHERE id = TG_ARGV[0]::bigint {lock};
    IF NOT FOUND OR current.state <> 'OPEN' OR current.seal_at <= clock_timestamp() THEN
        RAISE EXCEPTION 'round % takes no more tickets', TG_ARGV[0] USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
END $$;
"""
_MANIFESTS = """
CREATE OR REPLACE FUNCTION refuse_manifest_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        RAISE EXCEPTION 'manifests are never deleted' USING ERRCODE = 'restrict_violation';
    END IF;
    IF TG_OP = 'INSERT' THEN
        {hold}
        IF (SELECT state FROM rounds WHERE id = NEW.round_id {lock}) <> 'OPEN' THEN
            RAISE EXCEPTION 'round % takes no more manifests', NEW.round_id USING ERRCODE = 'restrict_violation';
        END IF;
    ELSIF (NEW.round_id, NEW.operator_id, NEW.manifest_json, NEW.manifest_hash, NEW.ticket_count, NEW.tickets_root, NEW.nonce_commit)
            IS DISTINCT FROM
          (OLD.round_id, OLD.operator_id, OLD.manifest_json, OLD.manifest_hash, OLD.ticket_count, OLD.tickets_root, OLD.nonce_commit)
        OR OLD.agreed IS NOT NULL
    THEN
        RAISE EXCEPTION 'a manifest is never altered' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
"""
_LOCKS = """
CREATE FUNCTION hold_round(asked bigint) RETURNS void LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock_shared(hashtextextended('round ' || asked, 0))
$$;
CREATE FUNCTION take_round(asked bigint) RETURNS void LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock(hashtextextended('round ' || asked, 0))
$$;

-- Whoever changes a round's state has it alone, somebody at a psql prompt too.
CREATE FUNCTION take_round_that_moves() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM take_round(OLD.id);
    RETURN NEW;
END $$;
CREATE TRIGGER alone BEFORE UPDATE OF state ON rounds
    FOR EACH ROW WHEN (NEW.state <> OLD.state) EXECUTE FUNCTION take_round_that_moves();
"""


def upgrade() -> None:
    op.execute(_LOCKS)
    op.execute(_TICKETS.format(hold="PERFORM hold_round(TG_ARGV[0]::bigint);", lock=""))
    op.execute(_MANIFESTS.format(hold="PERFORM hold_round(NEW.round_id);", lock=""))


def downgrade() -> None:
    op.execute(_TICKETS.format(hold="", lock="FOR SHARE"))
    op.execute(_MANIFESTS.format(hold="", lock="FOR SHARE"))
    op.execute("DROP TRIGGER alone ON rounds")
    op.execute("DROP FUNCTION take_round_that_moves, take_round, hold_round")
