"""The doorbell: telling the workers that a row is due.

The one rule kept here: a bell is rung after the commit and never instead of it, and a bell that cannot be rung is no
error: the scheduler finds the row and rings again. Whoever rings knows the bell's name only; the actor that answers
it stands beside the work it does. A bell of a paused queue is heard and not answered: its row stays due.

Most bells name a row. The one for webhooks does not: whoever hears it takes from all that are due.
"""

import logging
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, TypeVar
from uuid import UUID

import dramatiq
from dramatiq.errors import BrokerError
from redis.exceptions import RedisError
from sqlalchemy import event
from sqlalchemy.orm import Session

from models.queues import is_paused
from tasks.broker import broker

log = logging.getLogger(__name__)

R = TypeVar("R")
RowId = int | str | UUID
DELIVERIES_A_BELL = 100
"""Another worker process is called for every so many new deliveries, up to MOST_BELLS at once."""
MOST_BELLS = 4
_BELLS = "bells to ring after the commit"


class Bell(StrEnum):
    """What a worker can be called for. The value is the actor's name."""

    ROUND = "advance_round"
    PIECE = "do_piece"
    DELIVERIES = "deliver"
    REQUEUE = "requeue_batch"
    HEARTBEAT = "check_heartbeat"
    SCHEDULE = "open_scheduled_round"
    CHORE = "do_chore"

    @property
    def queue(self) -> str:
        """Webhooks wait in a queue of their own: rounds must not wait behind a slow receiver.

        Queueing them again and purging old ones belong to it, so that whoever pauses webhooks pauses that as well.
        """
        return "deliveries" if self in (Bell.DELIVERIES, Bell.REQUEUE, Bell.CHORE) else "rounds"


QUEUES = tuple(sorted({bell.queue for bell in Bell}))
"""The names of all queues."""


def answers(bell: Bell) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Make a function answer ``bell``. It stays a plain function; what it returns is for other callers than bells."""

    def decorate(function: Callable[..., R]) -> Callable[..., R]:
        def answer(*row_id: Any) -> None:
            # Asked every time and of the database, so that a pause counts for the very next piece of work.
            if not is_paused(bell.queue):
                function(*row_id)

        dramatiq.actor(broker=broker, actor_name=bell.value, queue_name=bell.queue)(answer)
        return function

    return decorate


def ring(bell: Bell, row_id: RowId | None = None) -> bool:
    """Send one bell now; False when Redis does not take it."""
    argument = row_id if row_id is None or isinstance(row_id, int) else str(row_id)
    message: dramatiq.Message[Any] = dramatiq.Message(
        queue_name=bell.queue,
        actor_name=bell.value,
        args=() if argument is None else (argument,),
        kwargs={},
        options={},
    )
    try:
        broker.enqueue(message)
    except (RedisError, BrokerError) as error:
        log.warning("bell not rung", extra={"bell": bell.value, "row": argument, "error": type(error).__name__})
        return False
    return True


def unheard(bell: Bell) -> int:
    """How many bells wait in the queue of this one; 0 while Redis is away."""
    try:
        return int(broker.client.llen(f"{broker.namespace}:{bell.queue}"))
    except RedisError:
        return 0


def ring_after_commit(session: Session, bell: Bell, row_ids: Iterable[RowId]) -> None:
    """Ring for the rows when the session's transaction is committed, and not if it is undone."""
    if _BELLS not in session.info:
        session.info[_BELLS] = []
        event.listen(session, "after_commit", _ring_all)
    session.info[_BELLS].extend((bell, row_id) for row_id in row_ids)


def _ring_all(session: Session) -> None:
    bells, session.info[_BELLS] = session.info[_BELLS], []
    deliveries = sum(bell is Bell.DELIVERIES for bell, _ in bells)
    calls = min(-(-deliveries // DELIVERIES_A_BELL), MOST_BELLS)
    todo: list[tuple[Bell, RowId | None]] = [(bell, row_id) for bell, row_id in bells if bell is not Bell.DELIVERIES]
    for bell, row_id in [*todo, *([(Bell.DELIVERIES, None)] * calls)]:
        if not ring(bell, row_id):
            # One refusal means Redis is away: do not make the caller wait for the same answer again and again.
            return
