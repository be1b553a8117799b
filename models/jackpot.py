"""What one round leaves to the next: cumulative tickets, draws since the last win, and the two pools.

The one rule kept here: the single row changes only when a round settles, under its lock; the pools themselves are
ledger accounts. A failed round leaves everything as it was.
"""

from datetime import datetime

from sqlalchemy import TIMESTAMP, CheckConstraint, ForeignKey, func
from sqlalchemy.orm import Mapped, Session, mapped_column

from models.base import Base


class Jackpot(Base):
    """The state of the lottery as a whole (a single row)."""

    __tablename__ = "jackpot"
    __table_args__ = (CheckConstraint("id = 1", name="single_row"),)

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    cumulative_tickets: Mapped[int] = mapped_column(server_default="0")
    draws_since_last_win: Mapped[int] = mapped_column(server_default="0")
    last_win_round_id: Mapped[int | None] = mapped_column(ForeignKey("rounds.id"))
    launched_at: Mapped[datetime] = mapped_column(TIMESTAMP(timezone=True), server_default=func.clock_timestamp())


def jackpot(session: Session, *, for_update: bool = False) -> Jackpot:
    """The single row. Locked, it also serialises the opening of rounds."""
    return session.get_one(Jackpot, 1, with_for_update=for_update or None)
