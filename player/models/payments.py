"""Payments: money on its way between a player's bank and a player's balance.

The one rule kept here: a payment ends once, completed or failed, and only then (a deposit) or only if it failed (a
withdrawal) is the balance touched again.
"""

from datetime import datetime
from uuid import UUID, uuid4

from sqlalchemy import CheckConstraint, ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from player.models.base import Base, Created, Due, Micro


class Payment(Due, Base):
    """A deposit or a withdrawal at the payment provider. ``due_at``: when the provider is to be told of it."""

    __tablename__ = "payments"
    __table_args__ = (
        CheckConstraint("kind IN ('deposit', 'withdrawal')", name="kind"),
        CheckConstraint("status IN ('pending', 'completed', 'failed')", name="status"),
        CheckConstraint("amount > 0", name="moves_something"),
        CheckConstraint("(status = 'pending') = (ended_at IS NULL)", name="ended_or_pending"),
        Index("ix_payments_due", "due_at", postgresql_where=text("due_at IS NOT NULL")),
        Index("ix_payments_player_id_created_at", "player_id", "created_at"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    player_id: Mapped[int] = mapped_column(ForeignKey("players.id"))
    transaction_id: Mapped[int] = mapped_column(ForeignKey("transactions.id"), unique=True)
    kind: Mapped[str]
    amount: Mapped[Micro]
    status: Mapped[str] = mapped_column(server_default="pending")
    destination: Mapped[str | None]
    provider_reference: Mapped[str | None] = mapped_column(unique=True)
    created_at: Mapped[Created]
    ended_at: Mapped[datetime | None]
