"""Limits: how much a player allows herself to spend on tickets in a day, a week and a month.

The one rule kept here: what protects the player counts at once, what loosens waits 24 hours.
"""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from player.models.base import Base, Micro

PERIODS = ("day", "week", "month")


class Limit(Base):
    """A limit in force, micro-USDC (NULL: none), and the looser one that follows it at ``next_at``."""

    __tablename__ = "limits"
    __table_args__ = (
        CheckConstraint("period IN ('day', 'week', 'month')", name="period"),
        CheckConstraint("amount >= 0", name="amount"),
        CheckConstraint("next_amount >= 0", name="next_amount"),
    )

    player_id: Mapped[int] = mapped_column(ForeignKey("players.id"), primary_key=True)
    period: Mapped[str] = mapped_column(primary_key=True)
    amount: Mapped[Micro | None]
    next_amount: Mapped[Micro | None]
    next_at: Mapped[datetime | None]
