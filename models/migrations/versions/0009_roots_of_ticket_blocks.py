"""Keep the roots over blocks of 64 sealed tickets, so that a proof hashes a block and no longer a chunk of 4,096

Revision: 0009. Rounds sealed before have none: their proofs hash the whole chunk, as they always did. From now on what is
kept of a chunk is never altered, like everything else that was sealed.
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_GUARDS = """
-- Hashes do not compress; and beside the row, not within it, they are not read with the roots of all chunks.
ALTER TABLE ticket_chunks ALTER COLUMN blocks SET STORAGE EXTERNAL;

CREATE TRIGGER kept BEFORE UPDATE OR DELETE OR TRUNCATE ON ticket_chunks
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewriting();
"""


def upgrade() -> None:
    op.add_column("ticket_chunks", sa.Column("blocks", sa.LargeBinary(), nullable=True))
    op.create_check_constraint(
        op.f("ck_ticket_chunks_whole_hashes"),
        "ticket_chunks",
        "octet_length(blocks) BETWEEN 32 AND 2048 AND octet_length(blocks) % 32 = 0",
    )
    op.execute(_GUARDS)


def downgrade() -> None:
    op.execute("DROP TRIGGER kept ON ticket_chunks")
    op.drop_constraint(op.f("ck_ticket_chunks_whole_hashes"), "ticket_chunks")
    op.drop_column("ticket_chunks", "blocks")
