"""Bulk re-queues as the people who run the coordinator see them: what one would do, and how far one is."""

from collections.abc import Mapping
from typing import Any

from marshmallow import Schema, fields
from marshmallow.validate import Length

from app.fields import Shown, Whole, identifier, one_of
from models.deliveries import DeliveryStatus
from models.requeue import GROUPS, Preview
from models.requeue_jobs import RequeueJob, shown_filters
from protocol.retry import ERROR_CLASSES
from protocol.timestamps import format_timestamp
from protocol.webhook import EVENTS

STATES = ("running", "finished", "cancelled")


class OperatorCountSchema(Schema):
    """How many of the deliveries are to this operator."""

    operatorId = identifier(required=True)
    deliveries = Whole(lowest=1, required=True)


class EventCountSchema(Schema):
    """How many of the deliveries are of this event."""

    event = one_of(EVENTS, required=True)
    deliveries = Whole(lowest=1, required=True)


class ErrorClassCountSchema(Schema):
    """How many of the deliveries failed like this the last time; null where that is not on record."""

    errorClass = one_of(ERROR_CLASSES, required=True, allow_none=True)
    deliveries = Whole(lowest=1, required=True)


class RequeuePreviewSchema(Schema):
    """How many failed deliveries fit, and what they are: the operators, events and error classes with most of them."""

    matched = Whole(required=True)
    requeued = Whole(required=True)
    dryRun = fields.Boolean(required=True)
    operators = fields.List(fields.Nested(OperatorCountSchema), required=True, validate=Length(max=GROUPS))
    events = fields.List(fields.Nested(EventCountSchema), required=True, validate=Length(max=GROUPS))
    errorClasses = fields.List(fields.Nested(ErrorClassCountSchema), required=True, validate=Length(max=GROUPS))


class RequeueFiltersSchema(Schema):
    """Which deliveries were asked for; null where nothing was said."""

    operatorId = identifier(required=True, allow_none=True)
    roundId = Whole(lowest=1, required=True, allow_none=True)
    event = one_of(EVENTS, required=True, allow_none=True)
    errorClass = one_of(ERROR_CLASSES, required=True, allow_none=True)
    since = Shown(required=True, allow_none=True)
    until = Shown(required=True, allow_none=True)


class RequeueSchema(Schema):
    """A bulk re-queue. Of ``matched`` deliveries, counted when it was asked for, ``requeued`` are queued again so far.

    Of these ``pending`` are still to be delivered, ``delivered`` are, and ``failed`` have failed once more; one that
    somebody queued again since is counted there. ``requeued`` may end below ``matched``: others may have been faster.
    A receiver that cannot keep up gets a second's worth at a time; the rest stays failed until it has dealt with that.
    """

    jobId = Whole(lowest=1, required=True)
    state = one_of(STATES, required=True)
    matched = Whole(required=True)
    requeued = Whole(required=True)
    pending = Whole(required=True)
    delivered = Whole(required=True)
    failed = Whole(required=True)
    filters = fields.Nested(RequeueFiltersSchema, required=True)
    reason = fields.String(required=True)
    actor = fields.String(required=True)
    createdAt = Shown(required=True)
    finishedAt = Shown(required=True, allow_none=True)
    cancelledAt = Shown(required=True, allow_none=True)
    cancelledBy = fields.String(required=True, allow_none=True)


class RequeueStartedSchema(RequeueSchema):
    """The bulk re-queue that was begun, as ``/api/admin/requeues/{jobId}`` shows it from now on."""

    dryRun = fields.Boolean(required=True)


class RequeueListSchema(Schema):
    """A page of bulk re-queues, newest first; ``nextCursor`` is null on the last one."""

    requeues = fields.List(fields.Nested(RequeueSchema), required=True)
    count = Whole(required=True)
    nextCursor = fields.String(required=True, allow_none=True)


def preview_view(found: Preview) -> dict[str, Any]:
    """What a bulk re-queue would do."""
    return {
        "matched": found.matched,
        "requeued": 0,
        "dryRun": True,
        "operators": _counted("operatorId", found.operators),
        "events": _counted("event", found.events),
        "errorClasses": _counted("errorClass", found.error_classes),
    }


def _counted(name: str, counts: Mapping[Any, int]) -> list[dict[str, Any]]:
    return [{name: value, "deliveries": count} for value, count in counts.items()]


def requeue_view(row: RequeueJob, outcome: Mapping[str, int]) -> dict[str, Any]:
    """A bulk re-queue and how its deliveries stand."""
    state = "cancelled" if row.cancelled_at else "finished" if row.finished_at else "running"
    return {
        "jobId": row.id,
        "state": state,
        "matched": row.matched,
        "requeued": row.requeued,
        **{status.value: outcome.get(status.value, 0) for status in DeliveryStatus},
        "filters": shown_filters(row.filters),
        "reason": row.reason,
        "actor": row.actor,
        "createdAt": format_timestamp(row.created_at),
        "finishedAt": format_timestamp(row.finished_at) if row.finished_at else None,
        "cancelledAt": format_timestamp(row.cancelled_at) if row.cancelled_at else None,
        "cancelledBy": row.cancelled_by,
    }
