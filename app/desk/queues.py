"""Looking after the queues: how much waits, pausing, resuming.

The one rule kept here: a pause stops work from being begun, and nothing else. What is due stays due; what
somebody is at is finished.
"""

from typing import Any

from sqlalchemy.orm import Session

from app.resources.queues import queue_view
from models.audit import record
from models.queues import pause, pauses, unpause
from protocol.errors import Conflict, NotFound
from protocol.timestamps import format_timestamp
from tasks.backlog import backlogs
from tasks.bell import QUEUES
from tasks.due import ring_again


def listed(session: Session) -> dict[str, Any]:
    """Every queue with what waits in it."""
    paused = pauses(session)
    rows = [queue_view(name, backlog, paused.get(name)) for name, backlog in backlogs(session).items()]
    return {"queues": rows, "count": len(rows)}


def pause_queue(session: Session, actor: str, name: str, reason: str) -> dict[str, Any]:
    """Let no work of a queue be begun, by any worker, from the commit on.

    :raises NotFound: no such queue.
    :raises Conflict: it is paused already.
    """
    _known(name)
    if not pause(session, name, actor, reason):
        held = pauses(session).get(name)
        by = f", since {format_timestamp(held.paused_at)} by {held.actor}: {held.reason}" if held else ""
        raise Conflict(f"the queue {name} is paused already{by}", code="wrong_state")
    record(session, actor, "queue.pause", name, reason)
    return _one(session, name)


def resume_queue(session: Session, actor: str, name: str, reason: str) -> dict[str, Any]:
    """Let a queue go on; what is due is rung for at once.

    :raises NotFound: no such queue.
    :raises Conflict: it is not paused.
    """
    _known(name)
    if not unpause(session, name):
        raise Conflict(f"the queue {name} is not paused", code="wrong_state")
    record(session, actor, "queue.resume", name, reason)
    ring_again(session, name)
    return _one(session, name)


def _known(name: str) -> None:
    if name not in QUEUES:
        raise NotFound(f"no such queue; there are: {', '.join(QUEUES)}")


def _one(session: Session, name: str) -> dict[str, Any]:
    return queue_view(name, backlogs(session)[name], pauses(session).get(name))
