"""Webhook endpoints as the people who run the coordinator see them."""

from typing import Any

from marshmallow import Schema, fields

from app.fields import Shown, Whole, identifier, one_of
from models.endpoint_search import EndpointState, EndpointView
from protocol.timestamps import format_timestamp
from tasks.redaction import without_query


class EndpointSchema(Schema):
    """An operator's webhook endpoint. ``url``: without its query; null while none is registered.

    ``failing``: its last ``failures`` attempts failed in a row. ``open``: so many that nothing is sent until
    ``openUntil``, and then one delivery, to try it. ``waiting``: deliveries that are due and that nobody is at, the
    oldest of them for ``oldestDueSeconds``; ``inFlight``: those being sent. The last three are null unless somebody has
    paused it.
    """

    operatorId = identifier(required=True)
    url = fields.String(required=True, allow_none=True)
    state = one_of(EndpointState, required=True)
    failures = Whole(required=True)
    openUntil = Shown(required=True, allow_none=True)
    waiting = Whole(required=True)
    oldestDueSeconds = fields.Float(required=True, allow_none=True)
    inFlight = Whole(required=True)
    pausedAt = Shown(required=True, allow_none=True)
    pausedBy = fields.String(required=True, allow_none=True)
    reason = fields.String(required=True, allow_none=True)


class EndpointListSchema(Schema):
    """A page of endpoints, in the order of their operators' ids; ``nextCursor`` is null on the last one."""

    endpoints = fields.List(fields.Nested(EndpointSchema), required=True)
    count = Whole(required=True)
    nextCursor = fields.String(required=True, allow_none=True)


def endpoint_view(found: EndpointView) -> dict[str, Any]:
    """An endpoint with what waits for it."""
    oldest = found.oldest_due_seconds
    return {
        "operatorId": found.operator_id,
        "url": without_query(found.url) if found.url else None,
        "state": found.state,
        "failures": found.failures,
        "openUntil": format_timestamp(found.open_until) if found.open_until else None,
        "waiting": found.waiting,
        "oldestDueSeconds": None if oldest is None else round(oldest, 3),
        "inFlight": found.in_flight,
        "pausedAt": format_timestamp(found.paused_at) if found.paused_at else None,
        "pausedBy": found.paused_by,
        "reason": found.pause_reason,
    }
