"""Webhooks: endpoints with a breaker, claims in batches, attempts that say more, bulk re-queues, tallies

Revision: 0004. Changes no delivery that is there. Indexes are built while deliveries are locked against writes: some
seconds for every ten million of them.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_MOMENT = sa.TIMESTAMP(timezone=True)
_IDENTIFIER = sa.Text(collation="C")

_ENDPOINT_OF_EVERY_OPERATOR = """
INSERT INTO webhook_endpoints (operator_id) SELECT id FROM operators;
CREATE FUNCTION add_webhook_endpoint() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO webhook_endpoints (operator_id) VALUES (NEW.id);
    RETURN NULL;
END $$;
CREATE TRIGGER endpoint AFTER INSERT ON operators FOR EACH ROW EXECUTE FUNCTION add_webhook_endpoint();
"""

# Not at once: whoever migrates has enough to look at.
_CHORES = """
INSERT INTO chores (id, due_at, ring_at)
SELECT 'purge_deliveries', first, first FROM (VALUES (clock_timestamp() + interval '1 hour')) AS moment(first)
"""


def upgrade() -> None:
    op.create_table(
        "webhook_endpoints",
        sa.Column("operator_id", _IDENTIFIER, nullable=False),
        sa.Column("failures", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("open_until", _MOMENT, nullable=True),
        sa.Column("paused_at", _MOMENT, nullable=True),
        sa.Column("paused_by", sa.Text(), nullable=True),
        sa.Column("pause_reason", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["operator_id"], ["operators.id"], name=op.f("fk_webhook_endpoints_operator_id")),
        sa.PrimaryKeyConstraint("operator_id", name=op.f("pk_webhook_endpoints")),
    )
    op.execute(_ENDPOINT_OF_EVERY_OPERATOR)
    op.create_table(
        "webhook_tallies",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "label", name=op.f("pk_webhook_tallies")),
    )
    op.create_table(
        "requeue_jobs",
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.Column("created_at", _MOMENT, server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("filters", postgresql.JSONB(none_as_null=True), nullable=False),
        sa.Column("failed_by", _MOMENT, nullable=False),
        sa.Column("matched", sa.BigInteger(), nullable=False),
        sa.Column("requeued", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("cancelled_at", _MOMENT, nullable=True),
        sa.Column("cancelled_by", sa.Text(), nullable=True),
        sa.Column("finished_at", _MOMENT, nullable=True),
        sa.Column("due_at", _MOMENT, nullable=True),
        sa.Column("ring_at", _MOMENT, server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_requeue_jobs")),
    )
    op.create_index("ix_requeue_jobs_ring", "requeue_jobs", ["ring_at"], postgresql_where=sa.text("due_at IS NOT NULL"))
    op.create_table(
        "chores",
        sa.Column("id", _IDENTIFIER, nullable=False),
        sa.Column("due_at", _MOMENT, nullable=True),
        sa.Column("ring_at", _MOMENT, server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_chores")),
    )
    op.execute(_CHORES)
    op.add_column("deliveries", sa.Column("priority", sa.SmallInteger(), server_default="0", nullable=False))
    op.drop_index("ix_deliveries_ring", table_name="deliveries")
    op.drop_column("deliveries", "ring_at")
    op.create_index(
        "ix_deliveries_due",
        "deliveries",
        ["operator_id", "priority", "due_at"],
        postgresql_where=sa.text("due_at IS NOT NULL"),
    )
    op.create_index(
        "ix_deliveries_leased", "deliveries", ["operator_id"], postgresql_where=sa.text("lease_ends_at IS NOT NULL")
    )
    op.create_index(
        "ix_deliveries_finished_at", "deliveries", ["finished_at"], postgresql_where=sa.text("finished_at IS NOT NULL")
    )
    # Every row changes some times and then hardly ever: tidied up soon, counting failed ones reads their index alone.
    op.execute("ALTER TABLE deliveries SET (autovacuum_vacuum_scale_factor = 0.02)")
    op.add_column("deliveries", sa.Column("requeue_job_id", sa.BigInteger(), nullable=True))
    op.create_foreign_key(
        op.f("fk_deliveries_requeue_job_id"), "deliveries", "requeue_jobs", ["requeue_job_id"], ["id"]
    )
    op.create_index(
        "ix_deliveries_requeue_job_id",
        "deliveries",
        ["requeue_job_id", "status"],
        postgresql_where=sa.text("requeue_job_id IS NOT NULL"),
    )
    op.create_index(
        "ix_deliveries_failed_of_operator",
        "deliveries",
        ["operator_id", "created_at", "id"],
        postgresql_include=["event", "error_class", "round_id", "finished_at"],
        postgresql_where=sa.text("status = 'failed'"),
    )
    op.add_column("delivery_attempts", sa.Column("phases_ms", postgresql.JSONB(none_as_null=True), nullable=True))
    op.add_column("delivery_attempts", sa.Column("peer", sa.Text(), nullable=True))
    op.add_column("delivery_attempts", sa.Column("reused", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column("delivery_attempts", sa.Column("detail", sa.Text(), nullable=True))


def downgrade() -> None:
    for column in ("detail", "reused", "peer", "phases_ms"):
        op.drop_column("delivery_attempts", column)
    op.drop_index("ix_deliveries_failed_of_operator", table_name="deliveries")
    op.execute("ALTER TABLE deliveries RESET (autovacuum_vacuum_scale_factor)")
    op.drop_column("deliveries", "requeue_job_id")
    op.drop_index("ix_deliveries_finished_at", table_name="deliveries")
    op.drop_index("ix_deliveries_leased", table_name="deliveries")
    op.drop_index("ix_deliveries_due", table_name="deliveries")
    op.add_column(
        "deliveries", sa.Column("ring_at", _MOMENT, server_default=sa.text("clock_timestamp()"), nullable=False)
    )
    op.create_index("ix_deliveries_ring", "deliveries", ["ring_at"], postgresql_where=sa.text("due_at IS NOT NULL"))
    op.drop_column("deliveries", "priority")
    op.drop_table("chores")
    op.drop_table("requeue_jobs")
    op.drop_table("webhook_tallies")
    op.execute("DROP TRIGGER endpoint ON operators; DROP FUNCTION add_webhook_endpoint()")
    op.drop_table("webhook_endpoints")
