"""Looking after webhook deliveries: finding them, and queueing a failed one again.

The one rule kept here: what is queued again was failed. A delivered message is never sent again by accident.
"""

from typing import Any
from uuid import UUID

from sqlalchemy.orm import Session

from app.resources.cursors import page_of
from app.resources.deliveries import delivery_detail, delivery_view, place_of
from models.audit import record
from models.deliveries import attempts_of
from models.delivery_search import Place, Wanted, delivery_by_id, search
from models.requeue import requeue
from protocol.errors import Conflict
from tasks.bell import Bell, ring_after_commit


def listed(session: Session, wanted: Wanted, limit: int, after: Place | None) -> dict[str, Any]:
    """A page of deliveries, newest first."""
    rows, next_cursor = page_of(search(session, wanted, limit + 1, after), limit, place_of)
    return {"deliveries": [delivery_view(row) for row in rows], "count": len(rows), "nextCursor": next_cursor}


def shown(session: Session, delivery_id: str) -> dict[str, Any]:
    """One delivery with its attempts.

    :raises NotFound: no such delivery.
    """
    row = delivery_by_id(session, _uuid(delivery_id))
    return delivery_detail(row, attempts_of(session, [row.id])[row.id])


def requeue_one(session: Session, actor: str, delivery_id: str, reason: str) -> dict[str, Any]:
    """Queue one failed delivery again, with as many attempts as a new one has.

    :raises NotFound: no such delivery.
    :raises Conflict: it is not failed.
    """
    row = delivery_by_id(session, _uuid(delivery_id))
    if not requeue(session, row.id):
        session.expunge(row)
        row = delivery_by_id(session, row.id)  # It may have been purged this moment.
        raise Conflict(f"the delivery is {row.status}: only a failed one is queued again", code="wrong_state")
    record(session, actor, "delivery.requeue", str(row.id), reason, attemptsBefore=row.attempts)
    ring_after_commit(session, Bell.DELIVERIES, [row.id])
    session.refresh(row)
    return delivery_view(row)


def _uuid(text: str) -> UUID | None:
    """An id as we write it; None for anything else, other spellings of a UUID included: one thing, one address."""
    try:
        return known if str(known := UUID(text)) == text else None
    except ValueError:
        return None
