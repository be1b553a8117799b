"""Queues that somebody has paused, and why.

The one rule kept here: a pause is a row. It is there for every process the moment it is committed, and outlives all of
them.
"""

from sqlalchemy import bindparam, delete, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Mapped, Session, mapped_column

from models.base import Base, Created, Identifier
from models.session import engine


class QueuePause(Base):
    """A paused queue: no work of it is begun while the row is there."""

    __tablename__ = "queue_pauses"

    queue: Mapped[Identifier] = mapped_column(primary_key=True)
    paused_at: Mapped[Created]
    actor: Mapped[str]
    reason: Mapped[str]


def pause(session: Session, queue: str, actor: str, reason: str) -> bool:
    """Pause a queue; False when it is paused already (by whom and why is left as it was)."""
    new = insert(QueuePause).values(queue=queue, actor=actor, reason=reason)
    return session.scalars(new.on_conflict_do_nothing().returning(QueuePause.queue)).first() is not None


def unpause(session: Session, queue: str) -> bool:
    """Let a queue go on; False when it is not paused."""
    gone = delete(QueuePause).where(QueuePause.queue == queue).returning(QueuePause.queue)
    return session.scalars(gone).first() is not None


def pauses(session: Session) -> dict[str, QueuePause]:
    """The paused queues, by name."""
    return {row.queue: row for row in session.scalars(select(QueuePause))}


def is_paused(queue: str) -> bool:
    """Whether work of this queue must not be begun. Asked before every piece of work, so by the cheapest way there is:
    one statement, without a session and a transaction around it.
    """
    with engine().connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        return connection.execute(_PAUSED, {"queue": queue}).first() is not None


_PAUSED = select(QueuePause.queue).where(QueuePause.queue == bindparam("queue"))
