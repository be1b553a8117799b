"""``/api/player/tickets``: buying tickets, and what became of them."""

from typing import Any

from flask import Response, jsonify
from flask.views import MethodView
from marshmallow import Schema, ValidationError, fields, validates_schema
from sqlalchemy.orm import Session

from player.api.credentials import current_player_id
from player.api.fields import Amount, Moment, Page, QueryWhole, Text, Truth, Whole, one_of
from player.api.idempotency import KEY_PARAMETER, carry_out_once
from player.api.money import LARGEST_ID
from player.api.parsing import Blueprint
from player.api.prizes import PrizeSchema
from player.models.inclusion import inclusion_proof
from player.models.ledger import balance, player_account
from player.models.prizes import prizes_on
from player.models.purchases import buy_ticket
from player.models.session import transaction
from player.models.tickets import STATUSES, ticket_of, tickets_of
from player.settings import settings
from protocol.prizes import TIERS
from protocol.rules import Six

blueprint = Blueprint("tickets", __name__, url_prefix="/api/player/tickets", description="Tickets")

NUMBERS = ("jackpotNumber", *(tier.label for tier in TIERS))
LARGEST_NUMBER = 2**53 - 1
"""Of the jackpot, whatever the round; the round's own range is checked when the ticket is sold."""


class SixNumbers(Schema):
    """The six numbers of a ticket (interface section 2.10)."""

    jackpotNumber = Whole(lowest=1, highest=LARGEST_NUMBER, attribute="jackpot_number")
    bonus1 = Whole(lowest=1, highest=TIERS[0].range)
    bonus2 = Whole(lowest=1, highest=TIERS[1].range)
    bonus3 = Whole(lowest=1, highest=TIERS[2].range)
    bonus4 = Whole(lowest=1, highest=TIERS[3].range)
    bonus5 = Whole(lowest=1, highest=TIERS[4].range)


class PurchaseSchema(SixNumbers):
    """A ticket to buy. With ``isQuickPick`` true the six numbers may be left out, and we choose them."""

    isQuickPick = Truth(required=True, metadata={"description": "The numbers were chosen by a computer."})
    roundId = Whole(lowest=1, metadata={"description": "For which round; left out: for the one whose sales end first."})

    @validates_schema
    def all_or_none(self, data: dict[str, Any], **kwargs: Any) -> None:
        given = ["jackpot_number" if name == "jackpotNumber" else name for name in NUMBERS]
        missing = [name for name, key in zip(NUMBERS, given, strict=True) if key not in data]
        if missing and not (len(missing) == len(NUMBERS) and data.get("isQuickPick")):
            raise ValidationError({name: ["Missing data for required field."] for name in missing})


class TicketSchema(SixNumbers):
    """A player's ticket (interface section 2.12)."""

    id = Whole(lowest=1, required=True)
    ticketId = Text(attribute="ticket_id", required=True)
    roundId = Whole(lowest=1, attribute="round_id", required=True)
    isQuickPick = Truth(attribute="is_quick_pick", required=True)
    price = Amount(required=True, metadata={"description": "micro-USDC."})
    status = one_of(STATUSES, required=True)
    winnings = Amount(
        required=True, allow_none=True, metadata={"description": "micro-USDC; null when none, or not certain yet."}
    )
    purchasedAt = Moment(attribute="purchased_at", required=True)


class OwnTicketSchema(TicketSchema):
    """A ticket with what it won."""

    prizes = fields.List(fields.Nested(PrizeSchema), required=True)


class PurchasedSchema(Schema):
    """A ticket that was sold."""

    ticket = fields.Nested(TicketSchema, required=True)
    balance = Amount(required=True, metadata={"description": "What is left, micro-USDC."})


class TicketsSchema(Schema):
    """Some of a player's tickets."""

    tickets = fields.List(fields.Nested(TicketSchema), required=True)
    count = Whole(required=True, metadata={"description": "How many are in this answer."})


class TicketsQuery(Page):
    """Which tickets."""

    status = one_of(STATUSES)
    roundId = QueryWhole(lowest=1, highest=LARGEST_NUMBER)


class InclusionSchema(Schema):
    """The way from a ticket's leaf to the root that was sealed, in the coordinator's form (docs/protocol.md)."""

    roundId = Whole(lowest=1, required=True)
    operatorId = fields.String(required=True)
    ticketId = fields.String(required=True)
    line = fields.String(required=True, metadata={"description": "What the leaf is the hash of."})
    leafHash = fields.String(required=True)
    leafIndex = Whole(required=True)
    treeSize = Whole(lowest=1, required=True)
    auditPath = fields.String(required=True, metadata={"description": "Sibling hashes from the leaf upwards, base64."})
    ticketsRoot = fields.String(required=True)
    fullManifestHash = fields.String(
        required=True, allow_none=True, metadata={"description": "Null: the coordinator says it, in the proof bundle."}
    )
    proofBundleUrl = fields.String(
        required=True, metadata={"description": "Where the coordinator publishes what was sealed by whom."}
    )


@blueprint.route("/purchase")
class Purchase(MethodView):
    """Buying."""

    @blueprint.doc(parameters=[KEY_PARAMETER])
    @blueprint.arguments(PurchaseSchema)
    @blueprint.response(201, PurchasedSchema)
    def post(self, body: dict[str, Any]) -> Response:
        """Buy a ticket.

        403 ``self_excluded``; 404 for a round that is not known; 409 ``no_open_round``, ``sales_closed``,
        ``insufficient_funds`` or ``limit_reached``. A refusal has changed nothing.
        """

        def buy(session: Session, player_id: int) -> dict[str, Any]:
            ticket = buy_ticket(session, player_id, _numbers(body), body["isQuickPick"], body.get("roundId"))
            return {"ticket": ticket, "balance": balance(session, player_account(player_id))}

        return carry_out_once(201, PurchasedSchema, buy).response()


def _numbers(body: dict[str, Any]) -> Six | None:
    if "jackpot_number" not in body:
        return None
    jackpot, one, two, three, four, five = (body[name] for name in ("jackpot_number", *(tier.label for tier in TIERS)))
    return jackpot, one, two, three, four, five


@blueprint.route("")
class Tickets(MethodView):
    """One's own tickets."""

    @blueprint.arguments(TicketsQuery, location="query")
    @blueprint.response(200, TicketsSchema)
    def get(self, query: dict[str, Any]) -> dict[str, Any]:
        """List tickets, newest first.

        ``refunded``: the round failed, or we were excluded from it, and the price was given back.
        """
        with transaction() as session:
            rows = tickets_of(
                session,
                current_player_id(),
                status=query.get("status"),
                round_id=query.get("roundId"),
                limit=query["limit"],
                offset=query["offset"],
            )
        return {"tickets": rows, "count": len(rows)}


@blueprint.route(f"/<int(max={LARGEST_ID}):number>")
class OneTicket(MethodView):
    """One ticket."""

    @blueprint.response(200, OwnTicketSchema)
    def get(self, number: int) -> Response:
        """Show one ticket by its id, with its prizes."""
        player_id = current_player_id()
        with transaction() as session:
            ticket = ticket_of(session, player_id, number)
            won = prizes_on(session, player_id, ticket.id)
        return jsonify({**TicketSchema().dump(ticket), "prizes": PrizeSchema(many=True).dump(won)})


@blueprint.route(f"/<int(max={LARGEST_ID}):number>/proof")
class TicketProof(MethodView):
    """That a ticket was in the draw."""

    @blueprint.response(200, InclusionSchema)
    def get(self, number: int) -> dict[str, Any]:
        """Prove that a ticket is among those that were sealed for the draw.

        409 ``not_sealed`` before. Compare ``ticketsRoot`` with the one that the coordinator's proof bundle of the
        round has for ``operatorId``, and the numbers in ``line`` with your own.
        """
        with transaction() as session:
            proof = inclusion_proof(session, ticket_of(session, current_player_id(), number))
        bundle = f"{settings().coordinator_url}/api/public/rounds/{proof['roundId']}/proof"
        return {**proof, "fullManifestHash": None, "proofBundleUrl": bundle}
