"""Webhook deliveries and the attempts at them: as those who run the coordinator see them, and as the operator does."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from marshmallow import Schema, fields

from app.fields import Shown, Whole, identifier, one_of
from app.resources.cursors import cursor_at
from models.deliveries import Delivery, DeliveryAttempt, DeliveryStatus
from protocol.retry import ERROR_CLASSES
from protocol.timestamps import format_timestamp
from protocol.webhook import EVENTS


class DeliverySchema(Schema):
    """A delivery. ``nextAttemptAt`` is null once it is finished, and while somebody is at it (``leasedUntil``).

    ``errorClass`` is why the last attempt failed. Of ``attemptCount`` attempts, ``attemptsBefore`` were made before
    it was last queued again by hand.
    """

    deliveryId = fields.UUID(required=True)
    operatorId = identifier(required=True)
    roundId = Whole(lowest=1, required=True, allow_none=True)
    event = one_of(EVENTS, required=True)
    status = one_of(DeliveryStatus, required=True)
    attemptCount = Whole(required=True)
    attemptsBefore = Whole(required=True)
    errorClass = one_of(ERROR_CLASSES, required=True, allow_none=True)
    createdAt = Shown(required=True)
    nextAttemptAt = Shown(required=True, allow_none=True)
    leasedUntil = Shown(required=True, allow_none=True)
    finishedAt = Shown(required=True, allow_none=True)


class PhasesSchema(Schema):
    """Where the time of an attempt went, milliseconds; ``wait`` is until the answer begins, ``receive`` the rest."""

    dns = fields.Float(required=True, allow_none=True)
    connect = fields.Float(required=True, allow_none=True)
    tls = fields.Float(required=True, allow_none=True)
    send = fields.Float(required=True, allow_none=True)
    wait = fields.Float(required=True, allow_none=True)
    receive = fields.Float(required=True, allow_none=True)


PHASES = tuple(PhasesSchema().fields)
"""The phases of an attempt, in order."""


class AttemptSchema(Schema):
    """One attempt. ``statusCode`` is null when no answer came; ``responseBody`` is the beginning of the answer's.

    ``phasesMs`` is null when nothing was called. ``peer`` is the address that was called, on a connection that was
    there already if ``connectionReused``. ``detail`` says more about ``errorClass``. There are no secrets in it.
    """

    number = Whole(lowest=1, required=True)
    startedAt = Shown(required=True)
    durationMs = Whole(required=True)
    url = fields.String(required=True)
    statusCode = Whole(required=True, allow_none=True)
    errorClass = one_of(ERROR_CLASSES, required=True, allow_none=True)
    detail = fields.String(required=True, allow_none=True)
    phasesMs = fields.Nested(PhasesSchema, required=True, allow_none=True)
    peer = fields.String(required=True, allow_none=True)
    connectionReused = fields.Boolean(required=True)
    responseBody = fields.String(required=True, allow_none=True)


class LoggedDeliverySchema(Schema):
    """What an operator sees of a delivery to it; ``deliveryId`` is the X-Service-Delivery header of every attempt."""

    deliveryId = fields.UUID(required=True)
    event = one_of(EVENTS, required=True)
    roundId = Whole(lowest=1, required=True, allow_none=True)
    status = one_of(DeliveryStatus, required=True)
    createdAt = Shown(required=True)
    nextAttemptAt = Shown(required=True, allow_none=True)
    attempts = fields.List(fields.Nested(AttemptSchema), required=True)


class DeliveryDetailSchema(DeliverySchema):
    """A delivery with the exact text that is sent and every attempt."""

    body = fields.String(required=True)
    attempts = fields.List(fields.Nested(AttemptSchema), required=True)


class DeliveryListSchema(Schema):
    """A page of deliveries, newest first; ``nextCursor`` is null on the last one."""

    deliveries = fields.List(fields.Nested(DeliverySchema), required=True)
    count = Whole(required=True)
    nextCursor = fields.String(required=True, allow_none=True)


def delivery_view(row: Delivery) -> dict[str, Any]:
    """A delivery as it stands in a list."""
    leased = row.lease_ends_at is not None
    return {
        "deliveryId": str(row.id),
        "operatorId": row.operator_id,
        "roundId": row.round_id,
        "event": row.event,
        "status": row.status,
        "attemptCount": row.attempts,
        "attemptsBefore": row.attempts_before,
        "errorClass": row.error_class,
        "createdAt": format_timestamp(row.created_at),
        "nextAttemptAt": None if leased else _shown(row.due_at),
        "leasedUntil": _shown(row.lease_ends_at),
        "finishedAt": _shown(row.finished_at),
    }


def delivery_detail(row: Delivery, attempts: Sequence[DeliveryAttempt]) -> dict[str, Any]:
    """A delivery by itself."""
    return {
        **delivery_view(row),
        "body": bytes(row.body).decode(),
        "attempts": [_attempt(attempt) for attempt in attempts],
    }


def logged_delivery(row: Delivery, attempts: Sequence[DeliveryAttempt]) -> dict[str, Any]:
    """A delivery as its operator sees it."""
    whole = delivery_view(row)
    shown = ("deliveryId", "event", "roundId", "status", "createdAt", "nextAttemptAt")
    return {**{name: whole[name] for name in shown}, "attempts": [_attempt(attempt) for attempt in attempts]}


def _attempt(attempt: DeliveryAttempt) -> dict[str, Any]:
    return {
        "number": attempt.number,
        "startedAt": format_timestamp(attempt.started_at),
        "durationMs": attempt.duration_ms,
        "url": attempt.url,
        "statusCode": attempt.status_code,
        "errorClass": attempt.error_class,
        "detail": attempt.detail,
        "phasesMs": {phase: attempt.phases_ms.get(phase) for phase in PHASES} if attempt.phases_ms else None,
        "peer": attempt.peer,
        "connectionReused": attempt.reused,
        "responseBody": attempt.response_body,
    }


def place_of(row: Delivery) -> str:
    """The cursor behind a delivery."""
    return cursor_at(row.created_at, row.id)


def _shown(moment: datetime | None) -> str | None:
    return format_timestamp(moment) if moment else None
