"""A webhook delivery and every attempt at it, as shown to the operator it is for."""

from collections.abc import Sequence
from typing import Any

from marshmallow import Schema, fields

from app.fields import Shown, Whole, one_of
from models.deliveries import Delivery, DeliveryAttempt, DeliveryStatus
from protocol.retry import ERROR_CLASSES
from protocol.timestamps import format_timestamp
from protocol.webhook import EVENTS


class LoggedAttemptSchema(Schema):
    """One attempt. ``responseBody`` is the beginning of what the receiver answered."""

    number = Whole(lowest=1, required=True)
    startedAt = Shown(required=True)
    durationMs = Whole(required=True)
    url = fields.String(required=True)
    statusCode = Whole(lowest=100, highest=999, required=True, allow_none=True)
    errorClass = one_of(ERROR_CLASSES, required=True, allow_none=True)
    responseBody = fields.String(required=True, allow_none=True)


class LoggedDeliverySchema(Schema):
    """One message and every attempt at it; ``deliveryId`` is the X-Service-Delivery header of each."""

    deliveryId = fields.UUID(required=True)
    event = one_of(EVENTS, required=True)
    roundId = Whole(lowest=1, required=True, allow_none=True)
    status = one_of(DeliveryStatus, required=True)
    createdAt = Shown(required=True)
    nextAttemptAt = Shown(required=True, allow_none=True)
    attempts = fields.List(fields.Nested(LoggedAttemptSchema), required=True)


def logged_delivery(delivery: Delivery, attempts: Sequence[DeliveryAttempt]) -> dict[str, Any]:
    """A delivery with these attempts at it. ``nextAttemptAt`` is null once there is nothing left to do."""
    waits = delivery.due_at if delivery.status == DeliveryStatus.PENDING else None
    return {
        "deliveryId": delivery.id,
        "event": delivery.event,
        "roundId": delivery.round_id,
        "status": delivery.status,
        "createdAt": format_timestamp(delivery.created_at),
        "nextAttemptAt": format_timestamp(waits) if waits else None,
        "attempts": [
            {
                "number": attempt.number,
                "startedAt": format_timestamp(attempt.started_at),
                "durationMs": attempt.duration_ms,
                "url": attempt.url,
                "statusCode": attempt.status_code,
                "errorClass": attempt.error_class,
                "responseBody": attempt.response_body,
            }
            for attempt in attempts
        ],
    }
