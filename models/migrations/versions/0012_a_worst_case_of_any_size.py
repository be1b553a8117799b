"""Let a round's worst case have any size: tickets that nobody ever pays for count in it too

Revision: 0012. In 64 bits it did not fit if some 370 million sealed tickets shared one bonus1 number. Such a round could not be
drawn, and one operator that sent them was enough.
"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.alter_column("rounds", "worst_case_usdc", existing_type=sa.BigInteger(), type_=sa.Numeric(30, 0))


def downgrade() -> None:
    op.alter_column("rounds", "worst_case_usdc", existing_type=sa.Numeric(30, 0), type_=sa.BigInteger())
