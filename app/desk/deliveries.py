"""Looking after webhook deliveries: finding them, and queueing failed ones again.

The one rule kept here: what is queued again was failed. A delivered message is never sent again by accident.
"""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy.orm import Session

from app.resources.cursors import page_of
from app.resources.deliveries import delivery_detail, delivery_view, place_of
from models.audit import record
from models.deliveries import DeliveryStatus, attempts_of
from models.delivery_search import Place, Wanted, delivery_by_id, search
from models.requeue import count_failed, requeue, requeue_some
from models.session import database_now, transaction
from protocol.errors import Conflict, Invalid
from protocol.timestamps import format_timestamp
from tasks.bell import Bell, ring_after_commit

BATCH = 1_000
"""Deliveries queued again in one transaction at the most."""


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
        session.refresh(row)
        raise Conflict(f"the delivery is {row.status}: only a failed one is queued again", code="wrong_state")
    record(session, actor, "delivery.requeue", str(row.id), reason, attemptsBefore=row.attempts)
    ring_after_commit(session, Bell.DELIVERIES, [row.id])
    session.refresh(row)
    return delivery_view(row)


def matching_failed(session: Session, wanted: Wanted) -> tuple[int, datetime]:
    """How many failed deliveries fit, and the moment (UTC) this was looked at.

    :raises Invalid: another status than failed is asked for.
    """
    if wanted.status not in (None, DeliveryStatus.FAILED):
        raise Invalid(
            "these deliveries cannot be queued again", details={"status": ["Only failed ones are queued again."]}
        )
    now = database_now(session)
    return count_failed(session, wanted, now), now


def requeue_matching(actor: str, wanted: Wanted, reason: str, failed_by: datetime, batch: int = BATCH) -> Iterator[int]:
    """Queue again all that fit and had failed by ``failed_by``; yields the number after each committed batch.

    Every batch is a transaction with its own audit entry: interrupted, what was done is done and on record, and the
    same call does the rest. The scheduler rings for them within its next ticks; ringing for each here would keep
    the caller waiting.
    """
    filters = {name: _plain(value) for name, value in asdict(wanted).items() if value is not None}
    while True:
        with transaction() as session:
            count = len(requeue_some(session, wanted, failed_by, batch))
            if count:
                subject = f"{count} deliveries"
                record(session, actor, "delivery.requeue_matching", subject, reason, filters=filters, requeued=count)
        if count:
            yield count
        if count < batch:
            return


def _plain(value: Any) -> Any:
    return format_timestamp(value) if isinstance(value, datetime) else value


def _uuid(text: str) -> UUID | None:
    """An id as we write it; None for anything else, other spellings of a UUID included: one thing, one address."""
    try:
        return known if str(known := UUID(text)) == text else None
    except ValueError:
        return None
