"""Transactions: a player's account statement, in the words of the published interface (section 2.12).

The one rule kept here: a transaction and the transfer behind it are written together, so that the sum of a player's
transactions that did not fail is the player's balance.
"""

from sqlalchemy import CheckConstraint, ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from player.models.base import Base, Created, Micro, Number

TYPES = ("deposit", "purchase", "withdrawal", "prize", "refund", "credit")
"""``refund`` returns the price of a ticket whose round failed; ``credit`` is given by the operator's staff."""
STATUSES = ("pending", "completed", "failed")


class Transaction(Base):
    """One line of a statement. ``amount`` is signed: below zero when money leaves the player's balance."""

    __tablename__ = "transactions"
    __table_args__ = (
        CheckConstraint("type IN ('deposit', 'purchase', 'withdrawal', 'prize', 'refund', 'credit')", name="type"),
        CheckConstraint("status IN ('pending', 'completed', 'failed')", name="status"),
        Index("ix_transactions_player_id_id", "player_id", "id"),
        Index("ix_transactions_player_id_type_id", "player_id", "type", "id"),
    )

    id: Mapped[Number]
    player_id: Mapped[int] = mapped_column(ForeignKey("players.id"))
    type: Mapped[str]
    amount: Mapped[Micro]
    status: Mapped[str] = mapped_column(server_default="completed")
    reference: Mapped[str | None]
    created_at: Mapped[Created]
