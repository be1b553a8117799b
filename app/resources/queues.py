"""Queues as the people who run the coordinator see them."""

from typing import Any

from marshmallow import Schema, fields

from app.fields import Shown, Whole, one_of
from models.queues import QueuePause
from protocol.timestamps import format_timestamp
from tasks.backlog import Backlog
from tasks.bell import QUEUES


class QueueSchema(Schema):
    """A queue. ``depth``: rows that are due and nobody is at, held back or not (above 20,000 webhooks an estimate);
    ``inFlight``: rows that a worker is at.

    ``oldestDueSeconds`` is for how long the oldest of the waiting rows has been due; null when none waits. The last
    three are null unless the queue is paused.
    """

    name = one_of(QUEUES, required=True)
    paused = fields.Boolean(required=True)
    depth = Whole(required=True)
    oldestDueSeconds = fields.Float(required=True, allow_none=True)
    inFlight = Whole(required=True)
    pausedAt = Shown(required=True, allow_none=True)
    pausedBy = fields.String(required=True, allow_none=True)
    reason = fields.String(required=True, allow_none=True)


class QueueListSchema(Schema):
    """Every queue there is."""

    queues = fields.List(fields.Nested(QueueSchema), required=True)
    count = Whole(required=True)


def queue_view(name: str, backlog: Backlog, pause: QueuePause | None) -> dict[str, Any]:
    """A queue with what waits in it."""
    oldest = backlog.oldest_due_seconds
    return {
        "name": name,
        "paused": pause is not None,
        "depth": backlog.depth,
        "oldestDueSeconds": None if oldest is None else round(oldest, 3),
        "inFlight": backlog.in_flight,
        "pausedAt": format_timestamp(pause.paused_at) if pause else None,
        "pausedBy": pause.actor if pause else None,
        "reason": pause.reason if pause else None,
    }
