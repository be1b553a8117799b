"""Queueing failed deliveries again, by hand.

The one rule kept here: only a failed delivery is queued again, by a conditional update; of two who try at once, one
does it. It gets as many new attempts as a new one; the old attempts stay on record and the numbers go on.
"""

from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, func, select, update
from sqlalchemy.orm import Session

from models.deliveries import Delivery, DeliveryStatus, Priority
from models.delivery_search import Wanted

_FAILED = Delivery.status == DeliveryStatus.FAILED.value
_AGAIN = {
    "status": DeliveryStatus.PENDING.value,
    "attempts_before": Delivery.attempts,
    "priority": Priority.REQUEUED.value,
    "due_at": func.clock_timestamp(),
    "finished_at": None,
}


def requeue(session: Session, delivery_id: UUID) -> bool:
    """Queue one delivery again; False when it is not failed (any more)."""
    again = update(Delivery).where(Delivery.id == delivery_id, _FAILED).values(_AGAIN).returning(Delivery.id)
    return session.scalars(again.execution_options(synchronize_session=False)).first() is not None


def count_failed(session: Session, wanted: Wanted, before: datetime) -> int:
    """How many deliveries fit and had failed by ``before``."""
    return session.scalars(select(func.count()).select_from(Delivery).where(*_matching(wanted, before))).one()


def requeue_some(session: Session, wanted: Wanted, before: datetime, most: int) -> list[UUID]:
    """Queue at most so many again, the oldest first; returns which ones. None when all that fit are done.

    Only those that had failed by ``before``: one that fails once more meanwhile is not queued a second time. Rows
    that somebody else is just queueing again are left to them.
    """
    some = select(Delivery.id).where(*_matching(wanted, before)).order_by(Delivery.created_at, Delivery.id).limit(most)
    locked = some.with_for_update(skip_locked=True).cte("locked")
    again = update(Delivery).where(Delivery.id == locked.c.id, _FAILED).values(_AGAIN).returning(Delivery.id)
    return list(session.scalars(again.execution_options(synchronize_session=False)))


def _matching(wanted: Wanted, before: datetime) -> list[ColumnElement[bool]]:
    return [*wanted.conditions(), _FAILED, Delivery.finished_at <= before]
