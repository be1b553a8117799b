"""The first schema

Revision: 0001. What the database refuses by itself is in guards_0001.sql.
"""

from pathlib import Path

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

ROUND_STATE = postgresql.ENUM(
    "OPEN",
    "SEALING",
    "SEALED",
    "ESCROWED",
    "DRAWN",
    "SETTLED",
    "CLOSED",
    "FAILED",
    name="round_state",
    create_type=False,
)


def upgrade() -> None:
    ROUND_STATE.create(op.get_bind())
    op.create_table(
        "admin_keys",
        sa.Column("id", sa.Text(collation="C"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("secret_digest", sa.LargeBinary(), nullable=False),
        sa.Column(
            "created_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("revoked_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_admin_keys")),
    )
    op.create_table(
        "audit_log",
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("details", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_log")),
    )
    op.create_table(
        "ledger_accounts",
        sa.Column("id", sa.Text(collation="C"), nullable=False),
        sa.Column("balance", sa.BigInteger(), server_default="0", nullable=False),
        sa.CheckConstraint("balance >= 0 OR id = 'external'", name=op.f("ck_ledger_accounts_not_overdrawn")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ledger_accounts")),
    )
    op.create_table(
        "operators",
        sa.Column("id", sa.Text(collation="C"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("jurisdiction", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("active", sa.Boolean(), server_default="true", nullable=False),
        sa.Column(
            "registered_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("webhook_url", sa.Text(), nullable=True),
        sa.Column("last_heartbeat", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("heartbeats_missed", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("rounds_participated", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("rounds_escrowed", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("rounds_excluded", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("rounds_won", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("nonces_withheld", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("payouts_on_time", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("payouts_late", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("on_chain_id", sa.Text(), nullable=True),
        sa.Column("on_chain_bond_amount", sa.BigInteger(), nullable=True),
        sa.Column("on_chain_bond_status", sa.Text(), nullable=True),
        sa.Column("on_chain_last_attestation", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("due_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("ring_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_operators")),
    )
    op.create_index(
        "ix_operators_ring", "operators", ["ring_at"], unique=False, postgresql_where=sa.text("due_at IS NOT NULL")
    )
    op.create_table(
        "round_schedule",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("cron", sa.Text(), nullable=False),
        sa.Column("due_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("ring_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.CheckConstraint("id = 1", name=op.f("ck_round_schedule_single_row")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_round_schedule")),
    )
    op.create_table(
        "rounds",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("state", ROUND_STATE, nullable=False),
        sa.Column(
            "created_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("seal_at", sa.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("sealing_deadline", sa.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("escrow_deadline", sa.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("scheduled_draw_time", sa.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("settle_at", sa.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("close_at", sa.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("rules", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("rules_hash", sa.Text(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("seed_commit", sa.Text(), nullable=False),
        sa.Column("secret_encrypted", sa.LargeBinary(), nullable=True),
        sa.Column("beacon_chain_hash", sa.Text(), nullable=True),
        sa.Column("beacon_round", sa.BigInteger(), nullable=True),
        sa.Column("previous_round_hash", sa.Text(), nullable=True),
        sa.Column("full_manifest_hash", sa.Text(), nullable=True),
        sa.Column("chained_anchor_hash", sa.Text(), nullable=True),
        sa.Column("effective_manifest_hash", sa.Text(), nullable=True),
        sa.Column("settlement_hash", sa.Text(), nullable=True),
        sa.Column("sealed_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("failure_reason", sa.Text(), nullable=True),
        sa.Column("abort_reason", sa.Text(), nullable=True),
        sa.Column("operator_count", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("escrowed_operator_count", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("excluded_operator_count", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("total_tickets", sa.BigInteger(), nullable=True),
        sa.Column("total_deposited", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("worst_case_usdc", sa.BigInteger(), nullable=True),
        sa.Column("coverage_usdc", sa.BigInteger(), nullable=True),
        sa.Column("due_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("ring_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.CheckConstraint(
            "(state = 'FAILED') = (failure_reason IS NOT NULL)", name=op.f("ck_rounds_failed_with_a_reason")
        ),
        sa.CheckConstraint(
            "seal_at <= sealing_deadline AND sealing_deadline <= escrow_deadline AND escrow_deadline <= scheduled_draw_time AND scheduled_draw_time <= settle_at AND settle_at <= close_at",
            name=op.f("ck_rounds_deadlines_in_order"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rounds")),
    )
    op.create_index(
        "ix_rounds_ring", "rounds", ["ring_at"], unique=False, postgresql_where=sa.text("due_at IS NOT NULL")
    )
    op.create_index("ix_rounds_state", "rounds", ["state"], unique=False)
    op.create_table(
        "tickets",
        sa.Column("round_id", sa.BigInteger(), nullable=False),
        sa.Column("operator_id", sa.Text(collation="C"), nullable=False),
        sa.Column("ticket_id", sa.Text(collation="C"), nullable=False),
        sa.Column("jackpot_number", sa.BigInteger(), nullable=False),
        sa.Column("bonus1", sa.Integer(), nullable=False),
        sa.Column("bonus2", sa.Integer(), nullable=False),
        sa.Column("bonus3", sa.Integer(), nullable=False),
        sa.Column("bonus4", sa.Integer(), nullable=False),
        sa.Column("bonus5", sa.Integer(), nullable=False),
        sa.Column("is_quick_pick", sa.Boolean(), nullable=False),
        postgresql_partition_by="LIST (round_id)",
    )
    op.create_table(
        "applications",
        sa.Column("id", sa.Text(collation="C"), nullable=False),
        sa.Column("status", sa.Text(), server_default="pending", nullable=False),
        sa.Column("token_digest", sa.LargeBinary(), nullable=False),
        sa.Column("company_name", sa.Text(), nullable=False),
        sa.Column("jurisdiction", sa.Text(), nullable=False),
        sa.Column("gaming_license_number", sa.Text(), nullable=False),
        sa.Column("contact_email", sa.Text(), nullable=False),
        sa.Column("contact_name", sa.Text(), nullable=False),
        sa.Column("ethereum_address", sa.Text(), nullable=False),
        sa.Column("website", sa.Text(), nullable=True),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column(
            "submitted_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("reviewed_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("review_note", sa.Text(), nullable=True),
        sa.Column("operator_id", sa.Text(collation="C"), nullable=True),
        sa.ForeignKeyConstraint(["operator_id"], ["operators.id"], name=op.f("fk_applications_operator_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_applications")),
    )
    op.create_index("ix_applications_status_submitted_at", "applications", ["status", "submitted_at"], unique=False)
    op.create_index(
        "uq_applications_pending_email",
        "applications",
        [sa.literal_column("lower(contact_email)")],
        unique=True,
        postgresql_where=sa.text("status = 'pending'"),
    )
    op.create_table(
        "deliveries",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("operator_id", sa.Text(collation="C"), nullable=False),
        sa.Column("round_id", sa.BigInteger(), nullable=True),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("status", sa.Text(), server_default="pending", nullable=False),
        sa.Column("attempts", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("fence", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column(
            "created_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("finished_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("error_class", sa.Text(), nullable=True),
        sa.Column("due_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("ring_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.ForeignKeyConstraint(["operator_id"], ["operators.id"], name=op.f("fk_deliveries_operator_id")),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name=op.f("fk_deliveries_round_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deliveries")),
    )
    op.create_index("ix_deliveries_operator_id_created_at", "deliveries", ["operator_id", "created_at"], unique=False)
    op.create_index(
        "ix_deliveries_ring", "deliveries", ["ring_at"], unique=False, postgresql_where=sa.text("due_at IS NOT NULL")
    )
    op.create_index("ix_deliveries_round_id", "deliveries", ["round_id"], unique=False)
    op.create_table(
        "draws",
        sa.Column("round_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "created_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("draw_seed", sa.Text(), nullable=False),
        sa.Column("beacon_randomness", sa.Text(), nullable=True),
        sa.Column("jackpot_number", sa.BigInteger(), nullable=False),
        sa.Column("bonus1", sa.BigInteger(), nullable=False),
        sa.Column("bonus2", sa.BigInteger(), nullable=False),
        sa.Column("bonus3", sa.BigInteger(), nullable=False),
        sa.Column("bonus4", sa.BigInteger(), nullable=False),
        sa.Column("bonus5", sa.BigInteger(), nullable=False),
        sa.Column("drawn_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("winner_counts", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("winners_root", sa.Text(), nullable=True),
        sa.Column("jackpot_amount", sa.BigInteger(), nullable=True),
        sa.Column("sub_prize_total", sa.BigInteger(), nullable=True),
        sa.Column("terms", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("releases", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("winner_index", sa.BigInteger(), nullable=True),
        sa.Column("winning_operator_id", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name=op.f("fk_draws_round_id")),
        sa.PrimaryKeyConstraint("round_id", name=op.f("pk_draws")),
    )
    op.create_index("ix_draws_drawn_at", "draws", ["drawn_at"], unique=False)
    op.create_table(
        "jackpot",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("cumulative_tickets", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("draws_since_last_win", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("last_win_round_id", sa.BigInteger(), nullable=True),
        sa.Column(
            "launched_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.CheckConstraint("id = 1", name=op.f("ck_jackpot_single_row")),
        sa.ForeignKeyConstraint(["last_win_round_id"], ["rounds.id"], name=op.f("fk_jackpot_last_win_round_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jackpot")),
    )
    op.create_table(
        "ledger_postings",
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.Column("reference", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("round_id", sa.BigInteger(), nullable=True),
        sa.Column(
            "created_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name=op.f("fk_ledger_postings_round_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ledger_postings")),
        sa.UniqueConstraint("reference", name=op.f("uq_ledger_postings_reference")),
    )
    op.create_index("ix_ledger_postings_round_id", "ledger_postings", ["round_id"], unique=False)
    op.create_table(
        "operator_api_keys",
        sa.Column("id", sa.Text(collation="C"), nullable=False),
        sa.Column("operator_id", sa.Text(collation="C"), nullable=False),
        sa.Column("secret_digest", sa.LargeBinary(), nullable=False),
        sa.Column("encrypted", sa.LargeBinary(), nullable=False),
        sa.Column(
            "created_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("expires_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["operator_id"], ["operators.id"], name=op.f("fk_operator_api_keys_operator_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_operator_api_keys")),
    )
    op.create_index(op.f("ix_operator_api_keys_operator_id"), "operator_api_keys", ["operator_id"], unique=False)
    op.create_table(
        "participations",
        sa.Column("round_id", sa.BigInteger(), nullable=False),
        sa.Column("operator_id", sa.Text(collation="C"), nullable=False),
        sa.Column(
            "invited_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("ticket_count", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("nonce", sa.LargeBinary(), nullable=True),
        sa.Column("nonce_revealed_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("escrow_usdc", sa.BigInteger(), nullable=True),
        sa.Column("escrowed_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("excluded_reason", sa.Text(), nullable=True),
        sa.Column("excluded_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.CheckConstraint(
            "excluded_reason IN ('missed_sealing', 'manifest_mismatch', 'missed_escrow')",
            name=op.f("ck_participations_exclusion_reason"),
        ),
        sa.CheckConstraint(
            "(escrowed_at IS NULL) = (escrow_usdc IS NULL)", name=op.f("ck_participations_escrow_whole")
        ),
        sa.CheckConstraint(
            "(excluded_at IS NULL) = (excluded_reason IS NULL)", name=op.f("ck_participations_exclusion_whole")
        ),
        sa.ForeignKeyConstraint(["operator_id"], ["operators.id"], name=op.f("fk_participations_operator_id")),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name=op.f("fk_participations_round_id")),
        sa.PrimaryKeyConstraint("round_id", "operator_id", name=op.f("pk_participations")),
    )
    op.create_index(
        "ix_participations_operator_id_round_id", "participations", ["operator_id", "round_id"], unique=False
    )
    op.create_table(
        "round_events",
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.Column("round_id", sa.BigInteger(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("data", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column(
            "created_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name=op.f("fk_round_events_round_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_round_events")),
    )
    op.create_index("ix_round_events_round_id_id", "round_events", ["round_id", "id"], unique=False)
    op.create_table(
        "round_transitions",
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.Column("round_id", sa.BigInteger(), nullable=False),
        sa.Column("trigger", sa.Text(), nullable=False),
        sa.Column("from_state", ROUND_STATE, nullable=True),
        sa.Column("to_state", ROUND_STATE, nullable=False),
        sa.Column("due_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.ForeignKeyConstraint(["round_id"], ["rounds.id"], name=op.f("fk_round_transitions_round_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_round_transitions")),
    )
    op.create_index("ix_round_transitions_round_id_id", "round_transitions", ["round_id", "id"], unique=False)
    op.create_table(
        "delivery_attempts",
        sa.Column("delivery_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.SmallInteger(), nullable=False),
        sa.Column("started_at", sa.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("duration_ms", sa.BigInteger(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("status_code", sa.SmallInteger(), nullable=True),
        sa.Column("error_class", sa.Text(), nullable=True),
        sa.Column("response_body", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["delivery_id"], ["deliveries.id"], name=op.f("fk_delivery_attempts_delivery_id")),
        sa.PrimaryKeyConstraint("delivery_id", "number", name=op.f("pk_delivery_attempts")),
    )
    op.create_table(
        "ledger_entries",
        sa.Column("posting_id", sa.BigInteger(), nullable=False),
        sa.Column("account_id", sa.Text(collation="C"), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("amount <> 0", name=op.f("ck_ledger_entries_moves_something")),
        sa.ForeignKeyConstraint(["posting_id"], ["ledger_postings.id"], name=op.f("fk_ledger_entries_posting_id")),
        sa.PrimaryKeyConstraint("posting_id", "account_id", name=op.f("pk_ledger_entries")),
    )
    op.create_index(
        "ix_ledger_entries_account_id_posting_id", "ledger_entries", ["account_id", "posting_id"], unique=False
    )
    op.create_table(
        "manifests",
        sa.Column("round_id", sa.BigInteger(), nullable=False),
        sa.Column("operator_id", sa.Text(collation="C"), nullable=False),
        sa.Column("manifest_json", sa.Text(), nullable=False),
        sa.Column("manifest_hash", sa.Text(), nullable=False),
        sa.Column("ticket_count", sa.BigInteger(), nullable=False),
        sa.Column("tickets_root", sa.Text(), nullable=True),
        sa.Column("nonce_commit", sa.Text(), nullable=True),
        sa.Column(
            "submitted_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("counted", sa.BigInteger(), nullable=True),
        sa.Column("counted_root", sa.Text(), nullable=True),
        sa.Column("agreed", sa.Boolean(), nullable=True),
        sa.CheckConstraint("(agreed IS NULL) = (counted_root IS NULL)", name=op.f("ck_manifests_recount_whole")),
        sa.ForeignKeyConstraint(
            ["round_id", "operator_id"],
            ["participations.round_id", "participations.operator_id"],
            name=op.f("fk_manifests_round_id_operator_id"),
        ),
        sa.PrimaryKeyConstraint("round_id", "operator_id", name=op.f("pk_manifests")),
    )
    op.create_table(
        "refresh_tokens",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("operator_id", sa.Text(collation="C"), nullable=False),
        sa.Column("key_id", sa.Text(collation="C"), nullable=False),
        sa.Column("family", sa.Uuid(), nullable=False),
        sa.Column("token_digest", sa.LargeBinary(), nullable=False),
        sa.Column(
            "created_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("expires_at", sa.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("revoked_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["key_id"], ["operator_api_keys.id"], name=op.f("fk_refresh_tokens_key_id")),
        sa.ForeignKeyConstraint(["operator_id"], ["operators.id"], name=op.f("fk_refresh_tokens_operator_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_refresh_tokens")),
        sa.UniqueConstraint("token_digest", name=op.f("uq_refresh_tokens_token_digest")),
    )
    op.create_index(op.f("ix_refresh_tokens_family"), "refresh_tokens", ["family"], unique=False)
    op.create_table(
        "round_pieces",
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.Column("round_id", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("operator_id", sa.Text(collation="C"), nullable=False),
        sa.Column("result", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("due_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("ring_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["round_id", "operator_id"],
            ["participations.round_id", "participations.operator_id"],
            name=op.f("fk_round_pieces_round_id_operator_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_round_pieces")),
        sa.UniqueConstraint("round_id", "kind", "operator_id", name=op.f("uq_round_pieces_round_id_kind_operator_id")),
    )
    op.create_index(
        "ix_round_pieces_ring",
        "round_pieces",
        ["ring_at"],
        unique=False,
        postgresql_where=sa.text("due_at IS NOT NULL"),
    )
    op.create_table(
        "winners",
        sa.Column("round_id", sa.BigInteger(), nullable=False),
        sa.Column("tier", sa.SmallInteger(), nullable=False),
        sa.Column("operator_id", sa.Text(collation="C"), nullable=False),
        sa.Column("ticket_id", sa.Text(collation="C"), nullable=False),
        sa.Column("prize_usdc", sa.BigInteger(), nullable=True),
        sa.Column("claim_deadline", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("claimed_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.CheckConstraint("tier BETWEEN 0 AND 5", name=op.f("ck_winners_tier")),
        sa.ForeignKeyConstraint(
            ["round_id", "operator_id"],
            ["participations.round_id", "participations.operator_id"],
            name=op.f("fk_winners_round_id_operator_id"),
        ),
        sa.ForeignKeyConstraint(["round_id"], ["draws.round_id"], name=op.f("fk_winners_round_id")),
        sa.PrimaryKeyConstraint("round_id", "tier", "operator_id", "ticket_id", name=op.f("pk_winners")),
    )
    op.create_index(
        "ix_winners_round_id_operator_id_ticket_id", "winners", ["round_id", "operator_id", "ticket_id"], unique=False
    )
    # exec_driver_sql: the file's percent signs and colons are PostgreSQL's, not bind parameters.
    op.get_bind().exec_driver_sql((Path(__file__).parent / "guards_0001.sql").read_text().replace("%", "%%"))


def downgrade() -> None:
    raise NotImplementedError("the first schema has nothing to go back to: drop the database instead")
