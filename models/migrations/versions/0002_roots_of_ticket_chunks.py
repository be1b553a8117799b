"""Keep the roots over chunks of sealed tickets, for inclusion proofs

Revision: 0002. Rounds sealed before have none, so no proofs either; their bundle and sealed tickets are complete.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "ticket_chunks",
        sa.Column("round_id", sa.BigInteger(), nullable=False),
        sa.Column("operator_id", sa.Text(collation="C"), nullable=False),
        sa.Column("first_ticket_id", sa.Text(collation="C"), nullable=False),
        sa.Column("root", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["round_id", "operator_id"],
            ["manifests.round_id", "manifests.operator_id"],
            name=op.f("fk_ticket_chunks_round_id_operator_id"),
        ),
        sa.PrimaryKeyConstraint("round_id", "operator_id", "first_ticket_id", name=op.f("pk_ticket_chunks")),
    )


def downgrade() -> None:
    op.drop_table("ticket_chunks")
