"""Looking after webhook endpoints: how each is doing, pausing one, resuming it.

The one rule kept here: a pause takes nothing from what waits. It stays due as it is, with its age and its attempts,
and is sent after the resume.
"""

from typing import Any

from sqlalchemy.orm import Session

from app.resources.cursors import cursor_at, page_of
from app.resources.endpoints import endpoint_view
from models.audit import record
from models.endpoint_search import EndpointState, endpoint_of, endpoints
from models.endpoints import pause_endpoint, resume_endpoint
from protocol.errors import Conflict
from protocol.timestamps import format_timestamp
from tasks.bell import Bell, ring_after_commit


def listed(session: Session, state: EndpointState | None, limit: int, after: tuple[str] | None) -> dict[str, Any]:
    """A page of endpoints."""
    found = endpoints(session, state, limit + 1, after[0] if after else None)
    page, next_cursor = page_of(found, limit, lambda one: cursor_at(one.operator_id))
    return {"endpoints": [endpoint_view(one) for one in page], "count": len(page), "nextCursor": next_cursor}


def pause(session: Session, actor: str, operator_id: str, reason: str) -> dict[str, Any]:
    """Begin no more sending to an operator, in any worker, from the commit on. What is being sent is finished.

    :raises NotFound: no such operator.
    :raises Conflict: it is paused already.
    """
    before = endpoint_of(session, operator_id)
    if not pause_endpoint(session, operator_id, actor, reason):
        held = endpoint_of(session, operator_id) if before.paused_at is None else before
        by = f", since {format_timestamp(held.paused_at)} by {held.paused_by}" if held.paused_at else ""
        told = f": {held.pause_reason}" if held.paused_at else ""
        raise Conflict(f"the endpoint of {operator_id} is paused already{by}{told}", code="wrong_state")
    record(session, actor, "endpoint.pause", operator_id, reason)
    return endpoint_view(endpoint_of(session, operator_id))


def resume(session: Session, actor: str, operator_id: str, reason: str) -> dict[str, Any]:
    """Send to an operator again, at once, whether somebody paused it or we hold back because it failed.

    :raises NotFound: no such operator.
    :raises Conflict: it is neither paused nor held back from.
    """
    before = endpoint_of(session, operator_id)
    if not resume_endpoint(session, operator_id):
        raise Conflict(f"the endpoint of {operator_id} is neither paused nor held back from", code="wrong_state")
    record(session, actor, "endpoint.resume", operator_id, reason, state=before.state, failures=before.failures)
    ring_after_commit(session, Bell.DELIVERIES, [operator_id])
    return endpoint_view(endpoint_of(session, operator_id))
