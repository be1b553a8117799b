"""Prizes that nobody claims return to the reserve

Revision: 0007. Prizes of rounds settled before expire by the deadlines that were published with them; what is past due
already goes to the reserve within the hour.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_MOMENT = sa.TIMESTAMP(timezone=True)

_MAY_OWE = """
-- An operator that spent prizes and did not pay them owes them: by an expiry, and in no other way, its account goes
-- below zero. External is the world outside.
CREATE OR REPLACE FUNCTION move_balance() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    after bigint;
BEGIN
    INSERT INTO ledger_accounts AS a (id, balance) VALUES (NEW.account_id, 0) ON CONFLICT (id) DO NOTHING;
    UPDATE ledger_accounts SET balance = balance + NEW.amount WHERE id = NEW.account_id RETURNING balance INTO after;
    IF after < 0 AND NEW.amount < 0 AND NEW.account_id LIKE 'operator:%'
        AND (SELECT kind FROM ledger_postings WHERE id = NEW.posting_id) IS DISTINCT FROM 'expiry'
    THEN
        RAISE EXCEPTION '% would be overdrawn (not_overdrawn)', NEW.account_id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
"""

_NEVER_OWES = """
CREATE OR REPLACE FUNCTION move_balance() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO ledger_accounts AS a (id, balance) VALUES (NEW.account_id, 0) ON CONFLICT (id) DO NOTHING;
    UPDATE ledger_accounts SET balance = balance + NEW.amount WHERE id = NEW.account_id;
    RETURN NEW;
END $$;
"""

_GUARDS = """
-- What expired is said once, and counted into one draw.
CREATE FUNCTION refuse_second_expiry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' OR TG_OP = 'TRUNCATE' THEN
        RAISE EXCEPTION 'expiries are never deleted' USING ERRCODE = 'restrict_violation';
    END IF;
    IF NEW.round_id <> OLD.round_id
        OR (OLD.expired_at IS NOT NULL
            AND (NEW.expires_at, NEW.expired_at, NEW.prizes, NEW.amount)
                IS DISTINCT FROM (OLD.expires_at, OLD.expired_at, OLD.prizes, OLD.amount))
        OR (OLD.counted_in IS NOT NULL AND NEW.counted_in IS DISTINCT FROM OLD.counted_in)
    THEN
        RAISE EXCEPTION 'the prizes of round % expired already', OLD.round_id USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER once BEFORE UPDATE OR DELETE ON expiries FOR EACH ROW EXECUTE FUNCTION refuse_second_expiry();
CREATE TRIGGER kept BEFORE TRUNCATE ON expiries FOR EACH STATEMENT EXECUTE FUNCTION refuse_second_expiry();
"""

_SETTLED_BEFORE = """
INSERT INTO expiries (round_id, expires_at)
SELECT r.id, max(w.claim_deadline) FROM rounds r JOIN winners w ON w.round_id = r.id
WHERE r.state IN ('SETTLED', 'CLOSED') GROUP BY r.id HAVING max(w.claim_deadline) IS NOT NULL
"""

_CHORE = """
INSERT INTO chores (id, due_at, ring_at)
SELECT 'expire_prizes', first, first FROM (VALUES (clock_timestamp() + interval '1 hour')) AS moment(first)
"""


def upgrade() -> None:
    op.create_table(
        "expiries",
        sa.Column("round_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("expires_at", _MOMENT, nullable=False),
        sa.Column("expired_at", _MOMENT, nullable=True),
        sa.Column("prizes", sa.BigInteger(), nullable=True),
        sa.Column("amount", sa.BigInteger(), nullable=True),
        sa.Column("counted_in", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "(expired_at IS NULL) = (prizes IS NULL) AND (expired_at IS NULL) = (amount IS NULL)",
            name=op.f("ck_expiries_whole"),
        ),
        sa.CheckConstraint("amount >= 0", name=op.f("ck_expiries_not_negative")),
        sa.CheckConstraint(
            "counted_in IS NULL OR expired_at IS NOT NULL AND counted_in > round_id",
            name=op.f("ck_expiries_counted_after"),
        ),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name=op.f("fk_expiries_round_id")),
        sa.ForeignKeyConstraint(["counted_in"], ["rounds.id"], name=op.f("fk_expiries_counted_in")),
        sa.PrimaryKeyConstraint("round_id", name=op.f("pk_expiries")),
    )
    op.create_index("ix_expiries_due", "expiries", ["expires_at"], postgresql_where=sa.text("expired_at IS NULL"))
    op.create_index("ix_expiries_counted_in", "expiries", ["counted_in"])
    op.execute(_SETTLED_BEFORE)
    op.execute(_GUARDS)
    op.execute(_CHORE)
    op.drop_constraint(op.f("ck_ledger_accounts_not_overdrawn"), "ledger_accounts")
    op.create_check_constraint(
        op.f("ck_ledger_accounts_not_overdrawn"),
        "ledger_accounts",
        "balance >= 0 OR id = 'external' OR id LIKE 'operator:%'",
    )
    op.execute(_MAY_OWE)


def downgrade() -> None:
    op.execute(_NEVER_OWES)
    op.drop_constraint(op.f("ck_ledger_accounts_not_overdrawn"), "ledger_accounts")
    op.create_check_constraint(
        op.f("ck_ledger_accounts_not_overdrawn"), "ledger_accounts", "balance >= 0 OR id = 'external'"
    )
    op.execute("DELETE FROM chores WHERE id = 'expire_prizes'")
    op.drop_table("expiries")
    op.execute("DROP FUNCTION refuse_second_expiry")
