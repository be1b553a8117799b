"""What the people who run it need: deliveries queued again by hand and found fast, queues that can be paused

Revision: 0003. Only adds. The two indexes are built while deliveries are locked against writes: some seconds for
every ten million of them.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "queue_pauses",
        sa.Column("queue", sa.Text(collation="C"), nullable=False),
        sa.Column(
            "paused_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("queue", name=op.f("pk_queue_pauses")),
    )
    op.add_column("deliveries", sa.Column("attempts_before", sa.SmallInteger(), server_default="0", nullable=False))
    op.add_column("deliveries", sa.Column("lease_ends_at", sa.TIMESTAMP(timezone=True), nullable=True))
    op.create_index("ix_deliveries_created_at_id", "deliveries", ["created_at", "id"], unique=False)
    op.create_index(
        "ix_deliveries_failed",
        "deliveries",
        ["created_at", "id"],
        unique=False,
        postgresql_where=sa.text("status = 'failed'"),
    )


def downgrade() -> None:
    op.drop_index("ix_deliveries_failed", table_name="deliveries")
    op.drop_index("ix_deliveries_created_at_id", table_name="deliveries")
    op.drop_column("deliveries", "lease_ends_at")
    op.drop_column("deliveries", "attempts_before")
    op.drop_table("queue_pauses")
