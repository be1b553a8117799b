"""``/api/admin/webhooks`` and ``/api/admin/mails``: what the coordinator told us, and what we told players.

The one rule kept here: a mail's text is shown in the sandbox only, and only until it is sent: it may hold a secret.
"""

from typing import Any

from flask.views import MethodView
from marshmallow import Schema, fields

from player.api.admin.shapes import listed, listing, of_player, of_round, yes_or_no
from player.api.fields import Moment, Page, Text
from player.api.parsing import Blueprint
from player.models.desk.records import find_mails, find_webhooks
from player.models.session import transaction
from player.settings import settings

blueprint = Blueprint("admin_letters", __name__, url_prefix="/api/admin", description="Webhooks and mails")


class StaffWebhooksQuerySchema(Page):
    """Which webhooks."""

    event = Text(shortest=1, load_default=None, metadata={"description": "As in round.drawn"})
    round_id = of_round()
    handled = yes_or_no("Those that were worked on, or those that wait")


class StaffMailsQuerySchema(Page):
    """Which mails."""

    player_id = of_player()
    sent = yes_or_no("Those that were sent, or those that wait")


class StaffWebhookSchema(Schema):
    """A webhook we received, once, whatever the number of its attempts."""

    deliveryId = fields.String(required=True, attribute="delivery_id")
    event = fields.String(required=True)
    roundId = fields.Integer(required=True, allow_none=True, attribute="round_id")
    body = fields.Raw(required=True, metadata={"description": "As the coordinator sent it, an object"})
    receivedAt = Moment(required=True, attribute="received_at")
    repeats = fields.Integer(required=True, metadata={"description": "How often it came again"})
    handledAt = Moment(required=True, allow_none=True, attribute="handled_at")
    nextAttemptAt = Moment(required=True, allow_none=True, attribute="due_at")


class StaffMailSchema(Schema):
    """A mail to a player."""

    id = fields.Integer(required=True)
    playerId = fields.Integer(required=True, attribute="player_id")
    address = fields.String(required=True)
    subject = fields.String(required=True)
    text = fields.Function(
        lambda mail: mail.body if settings().sandbox else None,
        metadata={"type": ["string", "null"], "description": "In the sandbox, until it is sent; null otherwise"},
    )
    attempts = fields.Integer(required=True)
    createdAt = Moment(required=True, attribute="created_at")
    sentAt = Moment(required=True, allow_none=True, attribute="sent_at")
    nextAttemptAt = Moment(required=True, allow_none=True, attribute="due_at")


@blueprint.route("/webhooks")
class Webhooks(MethodView):
    """All webhooks."""

    @blueprint.arguments(StaffWebhooksQuerySchema, location="query")
    @blueprint.response(200, listing("StaffWebhooks", "webhooks", StaffWebhookSchema))
    def get(self, query: dict[str, Any]) -> dict[str, Any]:
        """List the webhooks received

        Newest first, by event, by round, handled or not.
        """
        with transaction() as session:
            return listed("webhooks", find_webhooks(session, **query))


@blueprint.route("/mails")
class Mails(MethodView):
    """All mails."""

    @blueprint.arguments(StaffMailsQuerySchema, location="query")
    @blueprint.response(200, listing("StaffMails", "mails", StaffMailSchema))
    def get(self, query: dict[str, Any]) -> dict[str, Any]:
        """List mails to players

        Newest first, of a player, sent or not. In the sandbox with their text, so that one can go on without a mail
        server.
        """
        with transaction() as session:
            return listed("mails", find_mails(session, **query))
