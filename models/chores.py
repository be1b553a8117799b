"""Chores: work that comes back, such as purging what has been kept long enough.

The one rule kept here: when a chore is due again is written in the transaction that did it, so that it is neither
forgotten nor done by two at once.
"""

from datetime import timedelta
from enum import StrEnum

from sqlalchemy import func, select
from sqlalchemy.orm import Mapped, Session, mapped_column

from models.base import Base, Due, Identifier


class Name(StrEnum):
    """Every chore there is. The migration that brings one writes its row."""

    PURGE_DELIVERIES = "purge_deliveries"
    EXPIRE_PRIZES = "expire_prizes"
    DROP_TICKETS = "drop_tickets"


class Chore(Due, Base):
    """One chore; its id is its name."""

    __tablename__ = "chores"

    id: Mapped[Identifier] = mapped_column(primary_key=True)


def take(session: Session, name: Name) -> Chore | None:
    """Take a chore to do it; None when it is not due or somebody else is at it."""
    due = select(Chore).where(Chore.id == name, Chore.due_at <= func.now())
    return session.scalars(due.with_for_update(skip_locked=True)).first()


def put_off(session: Session, chore: Chore, seconds: float, ring_seconds: float) -> None:
    """Make a chore that was taken due again in so many seconds, to be rung for in ``ring_seconds`` at the soonest."""
    chore.due_at = func.clock_timestamp() + timedelta(seconds=seconds)
    chore.ring_at = func.clock_timestamp() + timedelta(seconds=ring_seconds)
    session.flush()
