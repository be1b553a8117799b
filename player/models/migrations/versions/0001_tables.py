"""The tables of a node, and the rules that the database itself keeps.

Revision: 0001
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# What no bug of ours and no stray psql may do.
GUARDS = """
-- Balances are kept by the ledger and by nothing else.
-- Once a statement: a round of many tickets is refunded without rewriting its account for each of them.
CREATE FUNCTION apply_transfers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- In the byte order of their ids, so that two transfers never wait for each other crosswise.
    INSERT INTO accounts (id) SELECT source FROM written UNION SELECT target FROM written ORDER BY 1
        ON CONFLICT (id) DO NOTHING;
    PERFORM 1 FROM accounts WHERE id IN (SELECT source FROM written UNION SELECT target FROM written)
        ORDER BY id FOR UPDATE;
    UPDATE accounts SET balance = balance + change FROM (
        SELECT account, sum(change)::bigint AS change FROM (
            SELECT source AS account, -amount AS change FROM written UNION ALL SELECT target, amount FROM written
        ) AS moves GROUP BY account
    ) AS sums WHERE id = account;
    RETURN NULL;
END $$;
CREATE TRIGGER apply_transfers AFTER INSERT ON transfers REFERENCING NEW TABLE AS written
    FOR EACH STATEMENT EXECUTE FUNCTION apply_transfers();

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is written once', TG_TABLE_NAME USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER written_once BEFORE UPDATE OR DELETE ON transfers FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER written_once BEFORE UPDATE OR DELETE ON audit_entries FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER kept BEFORE DELETE ON transactions FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER kept BEFORE DELETE ON tickets FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER kept BEFORE DELETE ON prizes FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- A transaction may end, and nothing else of it may change.
CREATE FUNCTION guard_transaction() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.id, NEW.player_id, NEW.type, NEW.amount, NEW.created_at)
        IS DISTINCT FROM (OLD.id, OLD.player_id, OLD.type, OLD.amount, OLD.created_at)
        OR (OLD.status <> 'pending' AND NEW.status <> OLD.status) THEN
        RAISE EXCEPTION 'a transaction only ends' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER only_ends BEFORE UPDATE ON transactions FOR EACH ROW EXECUTE FUNCTION guard_transaction();

-- Whoever excluded herself stays so for as long as she said.
CREATE FUNCTION guard_self_exclusion() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.self_excluded_until > clock_timestamp()
        AND (NEW.self_excluded_until IS NULL OR NEW.self_excluded_until < OLD.self_excluded_until) THEN
        RAISE EXCEPTION 'a self-exclusion cannot be shortened' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER not_shortened BEFORE UPDATE OF self_excluded_until ON players
    FOR EACH ROW EXECUTE FUNCTION guard_self_exclusion();

-- Sales: who sells a ticket shares a lock that whoever closes them takes alone (guard_stage), so nothing slips in behind.
-- Not the round's row: where many buy, somebody always holds it, and whoever works on the round would wait for hours.
CREATE FUNCTION guard_sale() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    round rounds;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('sales of ' || NEW.round_id, 0));
    SELECT * INTO round FROM rounds WHERE id = NEW.round_id;
    IF round.stage <> 'selling' OR round.sales_close_at <= clock_timestamp() THEN
        RAISE EXCEPTION 'sales of round % are over', NEW.round_id USING ERRCODE = 'check_violation',
            CONSTRAINT = 'sales_open';
    END IF;
    IF NEW.price <> round.ticket_price OR NEW.status <> 'active' OR NEW.submission_id IS NOT NULL
        OR NEW.jackpot_number NOT BETWEEN 1 AND round.odds_range OR NEW.bonus1 NOT BETWEEN 1 AND 1000000
        OR NEW.bonus2 NOT BETWEEN 1 AND 100000 OR NEW.bonus3 NOT BETWEEN 1 AND 10000
        OR NEW.bonus4 NOT BETWEEN 1 AND 1000 OR NEW.bonus5 NOT BETWEEN 1 AND 100 THEN
        RAISE EXCEPTION 'not a ticket of round %', NEW.round_id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER sales_open BEFORE INSERT ON tickets FOR EACH ROW EXECUTE FUNCTION guard_sale();

-- What was sold stays what it is; a batch keeps its tickets; a ticket's fate is decided once.
CREATE FUNCTION guard_ticket() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.id, NEW.ticket_id, NEW.player_id, NEW.round_id, NEW.jackpot_number, NEW.bonus1, NEW.bonus2, NEW.bonus3,
        NEW.bonus4, NEW.bonus5, NEW.is_quick_pick, NEW.price, NEW.purchased_at)
        IS DISTINCT FROM (OLD.id, OLD.ticket_id, OLD.player_id, OLD.round_id, OLD.jackpot_number, OLD.bonus1,
        OLD.bonus2, OLD.bonus3, OLD.bonus4, OLD.bonus5, OLD.is_quick_pick, OLD.price, OLD.purchased_at)
        OR (OLD.submission_id IS NOT NULL AND NEW.submission_id IS DISTINCT FROM OLD.submission_id)
        OR (OLD.status NOT IN ('active', 'won') AND NEW.status <> OLD.status)
        OR (OLD.status = 'won' AND NEW.status NOT IN ('won', 'refunded')) THEN
        RAISE EXCEPTION 'a ticket is sold once and settled once' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER stays BEFORE UPDATE ON tickets FOR EACH ROW EXECUTE FUNCTION guard_ticket();

CREATE FUNCTION guard_prize() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.id, NEW.ticket, NEW.player_id, NEW.round_id, NEW.tier)
        IS DISTINCT FROM (OLD.id, OLD.ticket, OLD.player_id, OLD.round_id, OLD.tier)
        OR (OLD.amount IS NOT NULL AND NEW.amount IS DISTINCT FROM OLD.amount)
        OR (OLD.status <> 'unclaimed' AND NEW.status <> OLD.status)
        OR (OLD.reported_at IS NOT NULL AND NEW.reported_at IS DISTINCT FROM OLD.reported_at) THEN
        RAISE EXCEPTION 'a prize is claimed once' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER claimed_once BEFORE UPDATE ON prizes FOR EACH ROW EXECUTE FUNCTION guard_prize();

-- Our own work on a round goes forward; only a round that is not settled can fail.
CREATE FUNCTION guard_stage() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    stages CONSTANT text[] := ARRAY['selling', 'closed', 'bound', 'revealed', 'checked', 'payable', 'done'];
BEGIN
    IF NEW.stage = OLD.stage THEN
        RETURN NEW;
    END IF;
    IF OLD.stage IN ('done', 'failed') OR (NEW.stage = 'failed' AND OLD.stage = 'payable')
        OR (NEW.stage <> 'failed' AND array_position(stages, NEW.stage) < array_position(stages, OLD.stage)) THEN
        RAISE EXCEPTION 'round % cannot go from % to %', OLD.id, OLD.stage, NEW.stage
            USING ERRCODE = 'check_violation';
    END IF;
    IF OLD.stage = 'selling' THEN
        PERFORM pg_advisory_xact_lock(hashtextextended('sales of ' || OLD.id, 0));
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER forward BEFORE UPDATE OF stage ON rounds FOR EACH ROW EXECUTE FUNCTION guard_stage();

INSERT INTO chores (kind, due_at) VALUES ('heartbeat', now()), ('poll', now()), ('webhook', now()),
    ('forget', now());
"""


def upgrade() -> None:
    op.create_table(
        "accounts",
        sa.Column("id", sa.Text(collation="C"), nullable=False),
        sa.Column("balance", sa.BigInteger(), server_default="0", nullable=False),
        sa.CheckConstraint("balance >= 0 OR id IN ('world', 'house')", name=op.f("ck_accounts_not_overdrawn")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_accounts")),
    )
    op.create_table(
        "audit_entries",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("details", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_entries")),
    )
    op.create_table(
        "chores",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("done_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("due_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("kind", name=op.f("pk_chores")),
    )
    op.create_table(
        "coordinator_views",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("body", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("fetched_at", sa.TIMESTAMP(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_coordinator_views")),
    )
    op.create_table(
        "players",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("password_hash", sa.Text(), nullable=False),
        sa.Column("display_name", sa.Text(), nullable=False),
        sa.Column("kyc_level", sa.Text(), server_default="none", nullable=False),
        sa.Column(
            "created_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("suspended_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("suspended_reason", sa.Text(), nullable=True),
        sa.Column("self_excluded_until", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.CheckConstraint("kyc_level IN ('none', 'basic', 'full')", name=op.f("ck_players_kyc_level")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_players")),
    )
    op.create_index("uq_players_email", "players", [sa.literal_column("lower(email)")], unique=True)
    op.create_table(
        "rounds",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("stage", sa.Text(), server_default="selling", nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("ticket_price", sa.BigInteger(), nullable=False),
        sa.Column("odds_range", sa.BigInteger(), nullable=False),
        sa.Column("seal_at", sa.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("sales_close_at", sa.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("scheduled_draw_time", sa.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("failure_reason", sa.Text(), nullable=True),
        sa.Column("nonce", sa.LargeBinary(), nullable=False),
        sa.Column("manifest", sa.Text(), nullable=True),
        sa.Column("tickets_root", sa.Text(), nullable=True),
        sa.Column("ticket_count", sa.BigInteger(), nullable=True),
        sa.Column("draw", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("claim_deadline", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("attempts", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column(
            "created_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("ended_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("due_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.CheckConstraint(
            "stage IN ('selling', 'closed', 'bound', 'revealed', 'checked', 'payable', 'done', 'failed')",
            name=op.f("ck_rounds_stage"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rounds")),
    )
    op.create_index("ix_rounds_due", "rounds", ["due_at"], unique=False, postgresql_where=sa.text("due_at IS NOT NULL"))
    op.create_table(
        "staff_keys",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column(
            "created_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("revoked_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_staff_keys")),
        sa.UniqueConstraint("name", name=op.f("uq_staff_keys_name")),
    )
    op.create_table(
        "transfers",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("reference", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(collation="C"), nullable=False),
        sa.Column("target", sa.Text(collation="C"), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column(
            "created_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.CheckConstraint("amount > 0", name=op.f("ck_transfers_moves_something")),
        sa.CheckConstraint("source <> target", name=op.f("ck_transfers_two_accounts")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_transfers")),
        sa.UniqueConstraint("reference", name=op.f("uq_transfers_reference")),
    )
    op.create_index("ix_transfers_source_id", "transfers", ["source", "id"], unique=False)
    op.create_index("ix_transfers_target_id", "transfers", ["target", "id"], unique=False)
    op.create_index(op.f("ix_transfers_created_at"), "transfers", ["created_at"], unique=False)
    op.create_table(
        "webhooks",
        sa.Column("delivery_id", sa.Text(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("round_id", sa.BigInteger(), nullable=True),
        sa.Column("body", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column(
            "received_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("repeats", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("handled_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("due_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("delivery_id", name=op.f("pk_webhooks")),
    )
    op.create_index(
        "ix_webhooks_due", "webhooks", ["due_at"], unique=False, postgresql_where=sa.text("due_at IS NOT NULL")
    )
    op.create_index("ix_webhooks_received_at", "webhooks", ["received_at"], unique=False)
    op.create_table(
        "idempotency_keys",
        sa.Column("player_id", sa.BigInteger(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("request_digest", sa.LargeBinary(), nullable=False),
        sa.Column("status", sa.BigInteger(), nullable=True),
        sa.Column("answer", postgresql.JSON(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column(
            "created_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.ForeignKeyConstraint(["player_id"], ["players.id"], name=op.f("fk_idempotency_keys_player_id")),
        sa.PrimaryKeyConstraint("player_id", "key", name=op.f("pk_idempotency_keys")),
    )
    op.create_index(op.f("ix_idempotency_keys_created_at"), "idempotency_keys", ["created_at"], unique=False)
    op.create_table(
        "kyc_requests",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("player_id", sa.BigInteger(), nullable=False),
        sa.Column("level", sa.Text(), nullable=False),
        sa.Column("document_reference", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), server_default="pending", nullable=False),
        sa.Column(
            "created_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("decided_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("decided_by", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "(status = 'pending') = (decided_at IS NULL)", name=op.f("ck_kyc_requests_decided_or_pending")
        ),
        sa.CheckConstraint("level IN ('basic', 'full')", name=op.f("ck_kyc_requests_level")),
        sa.CheckConstraint("status IN ('pending', 'approved', 'rejected')", name=op.f("ck_kyc_requests_status")),
        sa.ForeignKeyConstraint(["player_id"], ["players.id"], name=op.f("fk_kyc_requests_player_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_kyc_requests")),
    )
    op.create_index("ix_kyc_requests_player_id_id", "kyc_requests", ["player_id", "id"], unique=False)
    op.create_index(
        "uq_kyc_requests_pending",
        "kyc_requests",
        ["player_id"],
        unique=True,
        postgresql_where=sa.text("status = 'pending'"),
    )
    op.create_table(
        "limits",
        sa.Column("player_id", sa.BigInteger(), nullable=False),
        sa.Column("period", sa.Text(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=True),
        sa.Column("next_amount", sa.BigInteger(), nullable=True),
        sa.Column("next_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.CheckConstraint("period IN ('day', 'week', 'month')", name=op.f("ck_limits_period")),
        sa.CheckConstraint("amount >= 0", name=op.f("ck_limits_amount")),
        sa.CheckConstraint("next_amount >= 0", name=op.f("ck_limits_next_amount")),
        sa.ForeignKeyConstraint(["player_id"], ["players.id"], name=op.f("fk_limits_player_id")),
        sa.PrimaryKeyConstraint("player_id", "period", name=op.f("pk_limits")),
    )
    op.create_table(
        "mails",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("player_id", sa.BigInteger(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=True),
        sa.Column("attempts", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column(
            "created_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("sent_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("due_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["player_id"], ["players.id"], name=op.f("fk_mails_player_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_mails")),
    )
    op.create_index("ix_mails_due", "mails", ["due_at"], unique=False, postgresql_where=sa.text("due_at IS NOT NULL"))
    op.create_index(op.f("ix_mails_created_at"), "mails", ["created_at"], unique=False)
    op.create_table(
        "password_resets",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("player_id", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("spent_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["player_id"], ["players.id"], name=op.f("fk_password_resets_player_id")),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_password_resets")),
    )
    op.create_index(op.f("ix_password_resets_player_id"), "password_resets", ["player_id"], unique=False)
    op.create_index(op.f("ix_password_resets_expires_at"), "password_resets", ["expires_at"], unique=False)
    op.create_table(
        "player_sessions",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("player_id", sa.BigInteger(), nullable=False),
        sa.Column(
            "created_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column(
            "last_used_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("address", sa.Text(), nullable=True),
        sa.Column("user_agent", sa.Text(), nullable=True),
        sa.Column("ended_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["player_id"], ["players.id"], name=op.f("fk_player_sessions_player_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_player_sessions")),
    )
    op.create_index(op.f("ix_player_sessions_player_id"), "player_sessions", ["player_id"], unique=False)
    op.create_index(op.f("ix_player_sessions_last_used_at"), "player_sessions", ["last_used_at"], unique=False)
    op.create_table(
        "submissions",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("round_id", sa.BigInteger(), nullable=False),
        sa.Column("tickets", sa.BigInteger(), nullable=False),
        sa.Column(
            "created_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("attempts", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("accepted_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name=op.f("fk_submissions_round_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_submissions")),
    )
    op.create_index(
        "ix_submissions_open",
        "submissions",
        ["round_id"],
        unique=False,
        postgresql_where=sa.text("accepted_at IS NULL"),
    )
    op.create_index("ix_submissions_round_id", "submissions", ["round_id"], unique=False)
    op.create_table(
        "transactions",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("player_id", sa.BigInteger(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Text(), server_default="completed", nullable=False),
        sa.Column("reference", sa.Text(), nullable=True),
        sa.Column(
            "created_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.CheckConstraint("status IN ('pending', 'completed', 'failed')", name=op.f("ck_transactions_status")),
        sa.CheckConstraint(
            "type IN ('deposit', 'purchase', 'withdrawal', 'prize', 'refund', 'credit')",
            name=op.f("ck_transactions_type"),
        ),
        sa.ForeignKeyConstraint(["player_id"], ["players.id"], name=op.f("fk_transactions_player_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_transactions")),
    )
    op.create_index("ix_transactions_player_id_id", "transactions", ["player_id", "id"], unique=False)
    op.create_index("ix_transactions_player_id_type_id", "transactions", ["player_id", "type", "id"], unique=False)
    op.create_table(
        "payments",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("player_id", sa.BigInteger(), nullable=False),
        sa.Column("transaction_id", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Text(), server_default="pending", nullable=False),
        sa.Column("destination", sa.Text(), nullable=True),
        sa.Column("provider_reference", sa.Text(), nullable=True),
        sa.Column(
            "created_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("ended_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("due_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.CheckConstraint("(status = 'pending') = (ended_at IS NULL)", name=op.f("ck_payments_ended_or_pending")),
        sa.CheckConstraint("kind IN ('deposit', 'withdrawal')", name=op.f("ck_payments_kind")),
        sa.CheckConstraint("status IN ('pending', 'completed', 'failed')", name=op.f("ck_payments_status")),
        sa.CheckConstraint("amount > 0", name=op.f("ck_payments_moves_something")),
        sa.ForeignKeyConstraint(["player_id"], ["players.id"], name=op.f("fk_payments_player_id")),
        sa.ForeignKeyConstraint(["transaction_id"], ["transactions.id"], name=op.f("fk_payments_transaction_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_payments")),
        sa.UniqueConstraint("provider_reference", name=op.f("uq_payments_provider_reference")),
        sa.UniqueConstraint("transaction_id", name=op.f("uq_payments_transaction_id")),
    )
    op.create_index(
        "ix_payments_due", "payments", ["due_at"], unique=False, postgresql_where=sa.text("due_at IS NOT NULL")
    )
    op.create_index("ix_payments_player_id_created_at", "payments", ["player_id", "created_at"], unique=False)
    op.create_table(
        "refresh_tokens",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("expires_at", sa.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("spent_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["session_id"], ["player_sessions.id"], name=op.f("fk_refresh_tokens_session_id")),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_refresh_tokens")),
    )
    op.create_index(op.f("ix_refresh_tokens_session_id"), "refresh_tokens", ["session_id"], unique=False)
    op.create_index(op.f("ix_refresh_tokens_expires_at"), "refresh_tokens", ["expires_at"], unique=False)
    op.create_table(
        "tickets",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("ticket_id", sa.Text(collation="C"), nullable=False),
        sa.Column("player_id", sa.BigInteger(), nullable=False),
        sa.Column("round_id", sa.BigInteger(), nullable=False),
        sa.Column("jackpot_number", sa.BigInteger(), nullable=False),
        sa.Column("bonus1", sa.BigInteger(), nullable=False),
        sa.Column("bonus2", sa.BigInteger(), nullable=False),
        sa.Column("bonus3", sa.BigInteger(), nullable=False),
        sa.Column("bonus4", sa.BigInteger(), nullable=False),
        sa.Column("bonus5", sa.BigInteger(), nullable=False),
        sa.Column("is_quick_pick", sa.Boolean(), nullable=False),
        sa.Column("price", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Text(), server_default="active", nullable=False),
        sa.Column("winnings", sa.BigInteger(), nullable=True),
        sa.Column(
            "purchased_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("submission_id", sa.BigInteger(), nullable=True),
        sa.Column("leaf_index", sa.BigInteger(), nullable=True),
        sa.Column("proof", sa.LargeBinary(), nullable=True),
        sa.CheckConstraint("status IN ('active', 'won', 'lost', 'refunded')", name=op.f("ck_tickets_status")),
        sa.ForeignKeyConstraint(["player_id"], ["players.id"], name=op.f("fk_tickets_player_id")),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name=op.f("fk_tickets_round_id")),
        sa.ForeignKeyConstraint(["submission_id"], ["submissions.id"], name=op.f("fk_tickets_submission_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tickets")),
        sa.UniqueConstraint("ticket_id", name=op.f("uq_tickets_ticket_id")),
    )
    op.create_index(
        "ix_tickets_active", "tickets", ["round_id"], unique=False, postgresql_where=sa.text("status = 'active'")
    )
    op.create_index("ix_tickets_player_id_id", "tickets", ["player_id", "id"], unique=False)
    op.create_index("ix_tickets_round_id_ticket_id", "tickets", ["round_id", "ticket_id"], unique=False)
    op.create_index("ix_tickets_submission_id", "tickets", ["submission_id"], unique=False)
    op.create_index(
        "ix_tickets_unsent", "tickets", ["round_id"], unique=False, postgresql_where=sa.text("submission_id IS NULL")
    )
    op.create_table(
        "prizes",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("ticket", sa.BigInteger(), nullable=False),
        sa.Column("player_id", sa.BigInteger(), nullable=False),
        sa.Column("round_id", sa.BigInteger(), nullable=False),
        sa.Column("tier", sa.BigInteger(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=True),
        sa.Column("status", sa.Text(), server_default="unclaimed", nullable=False),
        sa.Column(
            "created_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("claimed_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("reported_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.CheckConstraint("(status = 'claimed') = (claimed_at IS NOT NULL)", name=op.f("ck_prizes_claimed_when")),
        sa.CheckConstraint("status = 'unclaimed' OR amount IS NOT NULL", name=op.f("ck_prizes_certain")),
        sa.CheckConstraint("status IN ('unclaimed', 'claimed', 'expired')", name=op.f("ck_prizes_status")),
        sa.CheckConstraint("tier BETWEEN 0 AND 5", name=op.f("ck_prizes_tier")),
        sa.ForeignKeyConstraint(["player_id"], ["players.id"], name=op.f("fk_prizes_player_id")),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name=op.f("fk_prizes_round_id")),
        sa.ForeignKeyConstraint(["ticket"], ["tickets.id"], name=op.f("fk_prizes_ticket")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_prizes")),
        sa.UniqueConstraint("ticket", "tier", name=op.f("uq_prizes_ticket_tier")),
    )
    op.create_index("ix_prizes_player_id_id", "prizes", ["player_id", "id"], unique=False)
    op.create_index("ix_prizes_round_id", "prizes", ["round_id"], unique=False)
    op.create_index(
        "ix_prizes_unreported",
        "prizes",
        ["round_id"],
        unique=False,
        postgresql_where=sa.text("status = 'claimed' AND reported_at IS NULL"),
    )
    op.execute(GUARDS)


def downgrade() -> None:
    op.drop_index(
        "ix_prizes_unreported",
        table_name="prizes",
        postgresql_where=sa.text("status = 'claimed' AND reported_at IS NULL"),
    )
    op.drop_index("ix_prizes_round_id", table_name="prizes")
    op.drop_index("ix_prizes_player_id_id", table_name="prizes")
    op.drop_table("prizes")
    op.drop_index("ix_tickets_unsent", table_name="tickets", postgresql_where=sa.text("submission_id IS NULL"))
    op.drop_index("ix_tickets_submission_id", table_name="tickets")
    op.drop_index("ix_tickets_round_id_ticket_id", table_name="tickets")
    op.drop_index("ix_tickets_player_id_id", table_name="tickets")
    op.drop_index("ix_tickets_active", table_name="tickets", postgresql_where=sa.text("status = 'active'"))
    op.drop_table("tickets")
    op.drop_index(op.f("ix_refresh_tokens_session_id"), table_name="refresh_tokens")
    op.drop_table("refresh_tokens")
    op.drop_index("ix_payments_player_id_created_at", table_name="payments")
    op.drop_index("ix_payments_due", table_name="payments", postgresql_where=sa.text("due_at IS NOT NULL"))
    op.drop_table("payments")
    op.drop_index("ix_transactions_player_id_type_id", table_name="transactions")
    op.drop_index("ix_transactions_player_id_id", table_name="transactions")
    op.drop_table("transactions")
    op.drop_index("ix_submissions_round_id", table_name="submissions")
    op.drop_index("ix_submissions_open", table_name="submissions", postgresql_where=sa.text("accepted_at IS NULL"))
    op.drop_table("submissions")
    op.drop_index(op.f("ix_player_sessions_player_id"), table_name="player_sessions")
    op.drop_table("player_sessions")
    op.drop_index(op.f("ix_password_resets_player_id"), table_name="password_resets")
    op.drop_table("password_resets")
    op.drop_index("ix_mails_due", table_name="mails", postgresql_where=sa.text("due_at IS NOT NULL"))
    op.drop_table("mails")
    op.drop_table("limits")
    op.drop_index("uq_kyc_requests_pending", table_name="kyc_requests", postgresql_where=sa.text("status = 'pending'"))
    op.drop_index("ix_kyc_requests_player_id_id", table_name="kyc_requests")
    op.drop_table("kyc_requests")
    op.drop_table("idempotency_keys")
    op.drop_index("ix_webhooks_received_at", table_name="webhooks")
    op.drop_index("ix_webhooks_due", table_name="webhooks", postgresql_where=sa.text("due_at IS NOT NULL"))
    op.drop_table("webhooks")
    op.drop_index("ix_transfers_target_id", table_name="transfers")
    op.drop_index("ix_transfers_source_id", table_name="transfers")
    op.drop_table("transfers")
    op.drop_table("staff_keys")
    op.drop_index("ix_rounds_due", table_name="rounds", postgresql_where=sa.text("due_at IS NOT NULL"))
    op.drop_table("rounds")
    op.drop_index("uq_players_email", table_name="players")
    op.drop_table("players")
    op.drop_table("coordinator_views")
    op.drop_table("chores")
    op.drop_table("audit_entries")
    op.drop_table("accounts")
    for function in (
        "apply_transfers", "refuse_change", "guard_transaction", "guard_self_exclusion", "guard_sale", "guard_ticket",
        "guard_prize", "guard_stage",
    ):  # fmt: skip
        op.execute(f"DROP FUNCTION {function}()")
