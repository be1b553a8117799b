"""Prizes: what tickets won, by tier, and whether the player and the coordinator know it was paid.

The one rule kept here: a prize is claimed once, in the transaction that raises the balance.
"""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from player.models.base import Base, Created, Micro, Number

STATUSES = ("unclaimed", "claimed", "expired")


class Prize(Base):
    """One prize of one ticket, tier 1 to 5, or 0 for a share of the jackpot.

    ``amount`` is micro-USDC, and NULL until the round is settled, which is when it is certain. ``reported_at``: when
    the coordinator was told that it is paid.
    """

    __tablename__ = "prizes"
    __table_args__ = (
        UniqueConstraint("ticket", "tier"),
        CheckConstraint("tier BETWEEN 0 AND 5", name="tier"),
        CheckConstraint("status IN ('unclaimed', 'claimed', 'expired')", name="status"),
        CheckConstraint("(status = 'claimed') = (claimed_at IS NOT NULL)", name="claimed_when"),
        CheckConstraint("status = 'unclaimed' OR amount IS NOT NULL", name="certain"),
        Index("ix_prizes_player_id_id", "player_id", "id"),
        Index("ix_prizes_round_id", "round_id"),
        Index(
            "ix_prizes_unreported",
            "round_id",
            postgresql_where=text("status = 'claimed' AND reported_at IS NULL"),
        ),
    )

    id: Mapped[Number]
    ticket: Mapped[int] = mapped_column(ForeignKey("tickets.id"))
    player_id: Mapped[int] = mapped_column(ForeignKey("players.id"))
    round_id: Mapped[int] = mapped_column(ForeignKey("rounds.id"))
    tier: Mapped[int]
    amount: Mapped[Micro | None]
    status: Mapped[str] = mapped_column(server_default="unclaimed")
    created_at: Mapped[Created]
    claimed_at: Mapped[datetime | None]
    reported_at: Mapped[datetime | None]
