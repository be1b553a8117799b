"""Queueing failed deliveries again, by hand.

The one rule kept here: only a failed delivery is queued again, by a conditional update; of two who try at once, one
does it. It gets as many new attempts as a new one; the old attempts stay on record and the numbers go on.
"""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, exists, func, select, text, true, update
from sqlalchemy.orm import Session, aliased

from models.deliveries import Delivery, DeliveryStatus, Priority
from models.delivery_search import Wanted
from models.endpoints import Endpoint
from models.leases import SLOW_CAP

_FAILED = Delivery.status == DeliveryStatus.FAILED.value
GROUPS = 10
"""So many operators, events and error classes are named in a preview at the most."""


@dataclass(frozen=True)
class Preview:
    """What would be queued again: how many, and of the operators, events and error classes with most, how many each."""

    matched: int
    operators: dict[str, int]
    events: dict[str, int]
    error_classes: dict[str | None, int]


def requeue(session: Session, delivery_id: UUID) -> bool:
    """Queue one delivery again; False when it is not failed (any more)."""
    again = update(Delivery).where(Delivery.id == delivery_id, _FAILED).values(_again()).returning(Delivery.id)
    return session.scalars(again.execution_options(synchronize_session=False)).first() is not None


def _again(job_id: int | None = None) -> dict[str, Any]:
    return {
        "status": DeliveryStatus.PENDING.value,
        "attempts_before": Delivery.attempts,
        "priority": Priority.REQUEUED.value,
        "due_at": func.clock_timestamp(),
        "finished_at": None,
        "requeue_job_id": job_id,
    }


def preview(session: Session, wanted: Wanted, before: datetime) -> Preview:
    """What fits and had failed by ``before``, by operator, event and error class: the ten largest of each."""
    columns = (Delivery.operator_id, Delivery.event, Delivery.error_class)
    # All three together are few, whatever they are counted from; each of them is then counted from these few.
    few = select(*columns, func.count().label("n")).where(*_matching(wanted, before)).group_by(*columns)
    operators: Counter[str] = Counter()
    events: Counter[str] = Counter()
    error_classes: Counter[str | None] = Counter()
    for operator_id, event, error_class, count in session.execute(few):
        operators[operator_id] += count
        events[event] += count
        error_classes[error_class] += count
    return Preview(
        matched=operators.total(),
        operators=dict(operators.most_common(GROUPS)),
        events=dict(events.most_common(GROUPS)),
        error_classes=dict(error_classes.most_common(GROUPS)),
    )


def count_failed(session: Session, wanted: Wanted, before: datetime) -> int:
    """How many deliveries fit and had failed by ``before``."""
    return session.scalars(select(func.count()).select_from(Delivery).where(*_matching(wanted, before))).one()


def any_failed(session: Session, wanted: Wanted, before: datetime) -> bool:
    """Whether any delivery fits and had failed by ``before``."""
    return bool(session.scalars(select(exists().where(*_matching(wanted, before)))).one())


def requeue_some(
    session: Session, job_id: int, wanted: Wanted, before: datetime, most: int, most_waiting: int
) -> list[UUID]:
    """Queue at most so many again for a job, the oldest first; returns which ones.

    Only those that had failed by ``before``: one that fails once more meanwhile is not queued a second time. At no
    endpoint do more than ``most_waiting`` wait that were queued again: what it cannot take yet stays failed, where it
    costs nothing and can still be left alone, and the others do not wait for it. Rows that somebody else is just
    queueing again are left to them.
    """
    waiting = aliased(Delivery)
    at_it = (
        select(waiting.id)
        .where(
            waiting.operator_id == Endpoint.operator_id,
            waiting.priority == Priority.REQUEUED.value,
            waiting.due_at.is_not(None),
        )
        .limit(most_waiting)
        .correlate(Endpoint)
        .subquery()
    )
    room = most_waiting - select(func.count()).select_from(at_it).correlate(Endpoint).scalar_subquery()
    endpoints = select(Endpoint.operator_id, room.label("room"))
    if wanted.operator_id is not None:
        endpoints = endpoints.where(Endpoint.operator_id == wanted.operator_id)
    rooms = endpoints.cte("rooms").prefix_with("MATERIALIZED", dialect="postgresql")
    of_one = (
        select(Delivery.id, Delivery.created_at)
        .where(Delivery.operator_id == rooms.c.operator_id, *_matching(wanted, before))
        .order_by(Delivery.created_at, Delivery.id)
        .limit(func.least(rooms.c.room, most))
        .correlate(rooms)
        .lateral("of_one")
    )
    oldest = (
        select(of_one.c.id)
        .select_from(rooms)
        .join(of_one, true())
        .order_by(of_one.c.created_at, of_one.c.id)
        .limit(most)
        .cte("oldest")
    )
    locked = (
        select(Delivery.id)
        .join(oldest, oldest.c.id == Delivery.id)
        .where(_FAILED)
        .with_for_update(skip_locked=True, of=Delivery)
        .cte("locked")
    )
    again = update(Delivery).where(Delivery.id == locked.c.id, _FAILED).values(_again(job_id)).returning(Delivery.id)
    return list(session.scalars(again.execution_options(synchronize_session=False)))


def slots_taken(session: Session) -> int:
    """How many sendings at once those that were queued again and are due could fill, over all endpoints.

    What waits at an endpoint that is paused or held back from fills none.
    """
    return int(session.scalars(_SLOTS, {"requeued": Priority.REQUEUED.value, "cap": SLOW_CAP}).one())


_SLOTS = text("""
    SELECT coalesce(sum(busy.slots), 0)
    FROM webhook_endpoints e
    CROSS JOIN LATERAL (
        SELECT count(*) AS slots FROM (
            SELECT FROM deliveries d
            WHERE d.operator_id = e.operator_id AND d.priority = :requeued
                AND d.due_at IS NOT NULL AND (d.due_at <= now() OR d.lease_ends_at IS NOT NULL)
            LIMIT :cap
        ) at_once
    ) busy
    WHERE e.paused_at IS NULL AND (e.open_until IS NULL OR e.open_until <= now())
""")


def _matching(wanted: Wanted, before: datetime) -> list[ColumnElement[bool]]:
    return [*wanted.conditions(), _FAILED, Delivery.finished_at <= before]
