"""``GET /api/operator/me`` and ``/balance``, ``POST /heartbeat`` and ``PUT /webhook``: the operator itself."""

from typing import Any

from flask.views import MethodView
from marshmallow import Schema, fields

from app.credentials import current_operator_id, require_operator
from app.documentation.declared import refuses
from app.fields import Micro, Shown, SignedMicro, Text, described, identifier
from app.parsing import Blueprint
from app.resources.operators import OwnProfileSchema, own_profile
from models.endpoints import forget_failures
from models.holdings import holdings
from models.operators import operator, record_heartbeat
from models.session import transaction
from protocol.errors import Invalid, Unavailable
from protocol.timestamps import format_timestamp
from tasks.addresses import LONGEST_URL, RefusedAddress, ResolverDown, UnknownHost
from tasks.bell import Bell, ring_after_commit
from tasks.resolver import check_destination

blueprint = Blueprint("operator_profile", __name__, url_prefix="/api/operator", description="The operator itself")
blueprint.before_request(require_operator)


class BalanceSchema(Schema):
    """Your money here (micro-USDC): what the next escrow can be taken from, and what is bound in rounds not settled.

    ``balanceUsdc`` is negative when you owe: prizes that expired after you had spent them.
    """

    operatorId = identifier(required=True)
    balanceUsdc = SignedMicro(required=True)
    inEscrowUsdc = Micro(required=True)


class HeartbeatSchema(Schema):
    """The heartbeat was counted."""

    success = fields.Boolean(required=True)
    operatorId = identifier(required=True)
    timestamp = Shown(required=True)


class WebhookSchema(Schema):
    """Where events are to be sent."""

    url = Text(**described({"required": True}, format="uri", pattern="^https?://"), longest=LONGEST_URL)


class WebhookRegisteredSchema(Schema):
    """Events are sent there from now on."""

    success = fields.Boolean(required=True)
    operatorId = identifier(required=True)
    webhookUrl = fields.String(required=True)


@blueprint.route("/me")
class Me(MethodView):
    """The profile."""

    @blueprint.response(200, OwnProfileSchema)
    def get(self) -> dict[str, Any]:
        """Your own profile."""
        with transaction() as session:
            return own_profile(operator(session, current_operator_id()))


@blueprint.route("/balance")
class Balance(MethodView):
    """Money."""

    @blueprint.response(200, BalanceSchema)
    def get(self) -> dict[str, Any]:
        """Your balance, and what is in escrow."""
        with transaction() as session:
            held = holdings(session, current_operator_id())
        return {
            "operatorId": current_operator_id(),
            "balanceUsdc": str(held.available),
            "inEscrowUsdc": str(held.in_escrow),
        }


@blueprint.route("/heartbeat")
class Heartbeat(MethodView):
    """Heartbeats."""

    @blueprint.response(200, HeartbeatSchema)
    def post(self) -> dict[str, Any]:
        """Say that you are alive; it counts for your reputation."""
        with transaction() as session:
            moment = record_heartbeat(session, current_operator_id())
        return {"success": True, "operatorId": current_operator_id(), "timestamp": format_timestamp(moment)}


@blueprint.route("/webhook")
class Webhook(MethodView):
    """The webhook address."""

    @refuses(
        RefusedAddress(
            "the webhook URL leads to an address that is not public",
            details={"url": ["the webhook URL leads to an address that is not public"]},
        ),
        UnknownHost(
            "the webhook URL's host does not resolve", details={"url": ["the webhook URL's host does not resolve"]}
        ),
        Unavailable("the webhook URL's host cannot be looked up now; try again shortly"),
    )
    @blueprint.arguments(WebhookSchema)
    @blueprint.response(200, WebhookRegisteredSchema)
    def put(self, body: dict[str, str]) -> dict[str, Any]:
        """Register where events are sent. The address must be public (https); its host is resolved now."""
        # Before the transaction: no session stays open while a name is resolved.
        try:
            check_destination(body["url"])
        except Invalid as error:
            raise Invalid(error.message, code=error.code, details={"url": [error.message]}) from None
        except ResolverDown:
            raise Unavailable("the webhook URL's host cannot be looked up now; try again shortly") from None
        with transaction() as session:
            operator(session, current_operator_id()).webhook_url = body["url"]
            # What the old address did says nothing about this one: whatever waits is tried there at once.
            forget_failures(session, current_operator_id())
            ring_after_commit(session, Bell.DELIVERIES, [current_operator_id()])
        return {"success": True, "operatorId": current_operator_id(), "webhookUrl": body["url"]}
