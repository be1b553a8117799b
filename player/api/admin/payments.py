"""``/api/admin/prizes`` and ``/api/admin/payments``: what players won, paid in and took out.

One rule: these are reads; a prize is claimed by its player, a payment ended by the payment provider.
"""

from typing import Any

from flask.views import MethodView
from marshmallow import Schema, fields

from player.api.admin.shapes import listed, listing, of_player, of_round
from player.api.fields import Amount, Moment, Page, one_of
from player.api.parsing import Blueprint
from player.models.desk.payments import find_payments, find_prizes
from player.models.prizes import STATUSES as PRIZE_STATUSES
from player.models.session import transaction
from player.models.transactions import STATUSES

blueprint = Blueprint("admin_payments", __name__, url_prefix="/api/admin", description="Prizes and payments")


class StaffPrizesQuerySchema(Page):
    """Which prizes."""

    round_id = of_round()
    player_id = of_player()
    status = one_of(PRIZE_STATUSES, load_default=None)


class StaffPaymentsQuerySchema(Page):
    """Which payments."""

    player_id = of_player()
    kind = one_of(["deposit", "withdrawal"], load_default=None)
    status = one_of(STATUSES, load_default=None)


class StaffPrizeSchema(Schema):
    """A prize, as staff sees it."""

    id = fields.Integer(required=True)
    ticketId = fields.String(required=True)
    playerId = fields.Integer(required=True, attribute="player_id")
    roundId = fields.Integer(required=True, attribute="round_id")
    tier = fields.Integer(required=True, metadata={"description": "1 to 5, or 0 for a share of the jackpot"})
    amount = Amount(required=True, allow_none=True, metadata={"description": "micro-USDC; null until it is certain"})
    status = fields.String(required=True)
    createdAt = Moment(required=True, attribute="created_at")
    claimedAt = Moment(required=True, allow_none=True, attribute="claimed_at")
    reportedAt = Moment(
        required=True,
        allow_none=True,
        attribute="reported_at",
        metadata={"description": "When the coordinator was told that it is paid"},
    )


class StaffPaymentSchema(Schema):
    """A payment, as staff sees it."""

    id = fields.UUID(required=True)
    playerId = fields.Integer(required=True, attribute="player_id")
    transactionId = fields.Integer(required=True, attribute="transaction_id")
    kind = fields.String(required=True)
    amount = Amount(required=True, metadata={"description": "micro-USDC"})
    status = fields.String(required=True)
    providerReference = fields.String(required=True, allow_none=True, attribute="provider_reference")
    createdAt = Moment(required=True, attribute="created_at")
    endedAt = Moment(required=True, allow_none=True, attribute="ended_at")
    nextAttemptAt = Moment(
        required=True,
        allow_none=True,
        attribute="due_at",
        metadata={"description": "When the provider is told of it (again); null once it was"},
    )


@blueprint.route("/prizes")
class Prizes(MethodView):
    """All prizes."""

    @blueprint.arguments(StaffPrizesQuerySchema, location="query")
    @blueprint.response(200, listing("StaffPrizes", "prizes", StaffPrizeSchema))
    def get(self, query: dict[str, Any]) -> dict[str, Any]:
        """List prizes

        Newest first, of a round, of a player, of a status; also those whose amount is not certain yet.
        """
        with transaction() as session:
            found = find_prizes(session, **query)
            columns = [field.attribute or name for name, field in StaffPrizeSchema._declared_fields.items()]
            columns.remove("ticketId")
            rows = [{"ticketId": ticket, **{name: getattr(prize, name) for name in columns}} for prize, ticket in found]
            return listed("prizes", rows)


@blueprint.route("/payments")
class Payments(MethodView):
    """All payments."""

    @blueprint.arguments(StaffPaymentsQuerySchema, location="query")
    @blueprint.response(200, listing("StaffPayments", "payments", StaffPaymentSchema))
    def get(self, query: dict[str, Any]) -> dict[str, Any]:
        """List deposits and withdrawals

        Newest first, of a player, of a kind, of a status.
        """
        with transaction() as session:
            return listed("payments", find_payments(session, **query))
