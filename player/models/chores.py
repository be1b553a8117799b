"""Chores: what is done again and again, whatever else happens.

The one rule kept here: a chore is a row with the moment of its next turn, so a restart neither forgets nor repeats it.
"""

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy.orm import Mapped, mapped_column

from player.models.base import Base, Due


class Kind(StrEnum):
    """What there is to do regularly."""

    HEARTBEAT = "heartbeat"
    WEBHOOK = "webhook"
    """Tell the coordinator where to send events."""
    POLL = "poll"
    """Ask the coordinator for the rounds we are invited to, and for the jackpot."""
    FORGET = "forget"
    """Forget what is of no use any more."""


class Chore(Due, Base):
    """One chore, and how it went last."""

    __tablename__ = "chores"

    kind: Mapped[str] = mapped_column(primary_key=True)
    done_at: Mapped[datetime | None]
    last_error: Mapped[str | None]


class View(Base):
    """Something the coordinator shows, as it was when we last asked: ``jackpot``, ``odds``, ``operator``, ``balance``,
    and ``round:<id>`` once it is drawn.

    ``body`` has the published names; amounts are strings of micro-USDC.
    """

    __tablename__ = "coordinator_views"

    name: Mapped[str] = mapped_column(primary_key=True)
    body: Mapped[dict[str, Any]]
    fetched_at: Mapped[datetime]
