"""``POST /api/operator/test-webhook``, ``/test-webhook/all`` and ``GET /webhook-logs``: trying out one's receiver.

The one rule kept here: a test takes the whole way of a real webhook. This page only writes the row and waits for what a
worker makes of it. There is none of this outside the sandbox.
"""

import time
from collections.abc import Sequence
from typing import Any

from flask.views import MethodView
from marshmallow import Schema, fields
from werkzeug.exceptions import NotFound as NoSuchPath

from app.credentials import current_operator_id, require_operator
from app.documentation.declared import refuses
from app.fields import Whole, one_of
from app.parsing import Blueprint
from app.resources.deliveries import LoggedDeliverySchema, logged_delivery
from app.resources.paging import paging
from app.resources.webhook_samples import samples
from models.deliveries import Delivery, DeliveryAttempt, DeliveryStatus, announce_sample, attempts_of, in_order, recent
from models.operators import operator
from models.session import database_now, transaction
from models.settings import settings
from protocol.errors import Conflict, NotFound
from protocol.webhook import EVENTS
from tasks.bell import Bell, ring_after_commit

POLL_SECONDS = 0.05
MARGIN_SECONDS = 5.0
"""How much longer than one attempt may take we wait for a worker's result."""


@refuses(NotFound("no such path"))
def require_sandbox() -> None:
    """Guard: outside the sandbox these paths do not exist.

    :raises NoSuchPath: always, outside the sandbox.
    """
    if not settings().sandbox:
        raise NoSuchPath


NO_WEBHOOK = Conflict("register a webhook first: PUT /api/operator/webhook", code="no_webhook")

blueprint = Blueprint("sandbox", __name__, url_prefix="/api/operator", description="Trying out webhooks (sandbox only)")
blueprint.before_request(require_sandbox)
blueprint.before_request(require_operator)


class TestWebhookSchema(Schema):
    """Which event."""

    eventType = one_of(EVENTS, required=True)


class TestDeliverySchema(Schema):
    """What came of a test. ``statusCode`` is the receiver's last answer; null when there was none."""

    event = one_of(EVENTS, required=True)
    status = one_of(DeliveryStatus, required=True)
    statusCode = Whole(lowest=100, highest=999, required=True, allow_none=True)


class TestedSchema(Schema):
    """What came of the test; ``success`` when the receiver took it."""

    success = fields.Boolean(required=True)
    delivery = fields.Nested(TestDeliverySchema, required=True)
    hint = fields.String(required=True)


class AllTestedSchema(Schema):
    """What came of the tests; ``success`` when the receiver took all of them."""

    success = fields.Boolean(required=True)
    deliveries = fields.List(fields.Nested(TestDeliverySchema), required=True)
    count = Whole(required=True)
    hint = fields.String(required=True)


class WebhookLogsSchema(Schema):
    """Your deliveries, newest first."""

    logs = fields.List(fields.Nested(LoggedDeliverySchema), required=True)
    count = Whole(required=True)


@blueprint.route("/test-webhook")
class TestWebhook(MethodView):
    """One event."""

    @refuses(NO_WEBHOOK)
    @blueprint.arguments(TestWebhookSchema)
    @blueprint.response(200, TestedSchema)
    def post(self, body: dict[str, str]) -> dict[str, Any]:
        """Send yourself a sample of one event, the way real ones are sent, and see what your receiver made of it."""
        [(delivery, attempts)] = _tested([body["eventType"]])
        return {
            "success": delivery.status == DeliveryStatus.DELIVERED,
            "delivery": _result(delivery, attempts),
            "hint": _hint(delivery, attempts),
        }


@blueprint.route("/test-webhook/all")
class TestAllWebhooks(MethodView):
    """Every event."""

    @refuses(NO_WEBHOOK)
    @blueprint.response(200, AllTestedSchema)
    def post(self) -> dict[str, Any]:
        """Send yourself a sample of every event there is."""
        tested = _tested(EVENTS)
        unhappy = [pair for pair in tested if pair[0].status != DeliveryStatus.DELIVERED]
        return {
            "success": not unhappy,
            "deliveries": [_result(*pair) for pair in tested],
            "count": len(tested),
            "hint": _hint(*(unhappy or tested)[0]),
        }


@blueprint.route("/webhook-logs")
class WebhookLogs(MethodView):
    """The log."""

    @blueprint.arguments(paging(50), location="query")
    @blueprint.response(200, WebhookLogsSchema)
    def get(self, query: dict[str, int]) -> dict[str, Any]:
        """Your deliveries, newest first, with every attempt and what your receiver answered."""
        with transaction() as session:
            deliveries = recent(session, current_operator_id(), **query)
            attempts = attempts_of(session, [delivery.id for delivery in deliveries])
        return {"logs": [logged_delivery(each, attempts[each.id]) for each in deliveries], "count": len(deliveries)}


def _tested(events: Sequence[str]) -> list[tuple[Delivery, list[DeliveryAttempt]]]:
    with transaction() as session:
        receiver = operator(session, current_operator_id())
        if receiver.webhook_url is None:
            raise Conflict(NO_WEBHOOK.message, code=NO_WEBHOOK.code)
        news = samples(receiver.id, database_now(session))
        ids = [announce_sample(session, event, receiver.id, *news[event]) for event in events]
        ring_after_commit(session, Bell.DELIVERIES, ids)
    deadline = time.monotonic() + settings().webhook_timeout_seconds + MARGIN_SECONDS
    while True:
        # A transaction for each look: none stays open while we wait for others.
        with transaction() as session:
            deliveries = in_order(session, ids)
            if time.monotonic() > deadline or all(each.status != DeliveryStatus.PENDING for each in deliveries):
                attempts = attempts_of(session, ids)
                return [(each, attempts[each.id]) for each in deliveries]
        time.sleep(POLL_SECONDS)


def _result(delivery: Delivery, attempts: list[DeliveryAttempt]) -> dict[str, Any]:
    return {
        "event": delivery.event,
        "status": delivery.status,
        "statusCode": attempts[-1].status_code if attempts else None,
    }


_HINTS = {
    "no_endpoint": "No webhook is registered.",
    "dns": "The host of your webhook URL does not resolve.",
    "refused_address": "Your webhook URL leads to an address that is not called.",
    "connect": "Your receiver cannot be reached.",
    "tls": "There is no TLS connection to your receiver that can be trusted.",
    "timeout": "Your receiver took too long.",
    "bad_response": "What came from your receiver is no whole HTTP answer.",
    "unknown": "The call to your receiver went wrong.",
    "status_3xx": "Your receiver redirects, and redirects are not followed. Register the address it redirects to.",
}


def _hint(delivery: Delivery, attempts: list[DeliveryAttempt]) -> str:
    where = f"Look for delivery {delivery.id} in GET /api/operator/webhook-logs."
    if delivery.status == DeliveryStatus.DELIVERED:
        return f"Your receiver answered 200. Did it check X-Service-Signature? {where}"
    if not attempts:
        return f"No worker has taken the delivery up yet. {where}"
    last = attempts[-1]
    answered = f"Your receiver answered {last.status_code}; only 200 counts as delivered."
    said = _HINTS.get(last.error_class or "", answered)
    return f"{said.removesuffix('.')}: {last.detail}. {where}" if last.detail else f"{said} {where}"
