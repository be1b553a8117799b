"""``/api/player/prizes``: what was won, and claiming it."""

from typing import Any

from flask import Response
from flask.views import MethodView
from marshmallow import Schema, fields
from sqlalchemy.orm import Session

from player.api.credentials import current_player_id
from player.api.fields import Amount, Moment, Page, QueryWhole, Text, Truth, Whole, one_of
from player.api.idempotency import KEY_PARAMETER, carry_out_once
from player.api.money import LARGEST_ID
from player.api.parsing import Blueprint
from player.models.ledger import balance, player_account
from player.models.prizes import STATUSES, claim_prize, prize_of, prizes_of
from player.models.session import transaction

blueprint = Blueprint("prizes", __name__, url_prefix="/api/player/prizes", description="Prizes")


class PrizeSchema(Schema):
    """A prize (interface section 2.12), shown once its amount is certain."""

    id = Whole(lowest=1, required=True)
    ticketId = Text(attribute="ticket_id", required=True)
    roundId = Whole(lowest=1, attribute="round_id", required=True)
    tier = Whole(highest=5, required=True, metadata={"description": "1 to 5, or 0 for a share of the jackpot."})
    amount = Amount(required=True, metadata={"description": "micro-USDC."})
    status = one_of(STATUSES, required=True)
    claimedAt = Moment(attribute="claimed_at", required=True, allow_none=True)
    claimDeadline = Moment(
        attribute="claim_deadline", required=True, allow_none=True, metadata={"description": "Null: none is known."}
    )


class PrizesSchema(Schema):
    """Some of a player's prizes."""

    prizes = fields.List(fields.Nested(PrizeSchema), required=True)
    count = Whole(required=True, metadata={"description": "How many are in this answer."})


class PrizesQuery(Page):
    """Which prizes."""

    status = one_of(STATUSES)
    roundId = QueryWhole(lowest=1, highest=2**53 - 1)


class ClaimedPrizeSchema(Schema):
    """What changed about a prize."""

    id = Whole(lowest=1, required=True)
    status = one_of(STATUSES, required=True)
    claimedAt = Moment(attribute="claimed_at", required=True)


class ClaimedSchema(Schema):
    """A prize that was claimed."""

    success = Truth(required=True)
    prize = fields.Nested(ClaimedPrizeSchema, required=True)
    balance = Amount(required=True, metadata={"description": "With the prize, micro-USDC."})


@blueprint.route("")
class Prizes(MethodView):
    """One's own prizes."""

    @blueprint.arguments(PrizesQuery, location="query")
    @blueprint.response(200, PrizesSchema)
    def get(self, query: dict[str, Any]) -> dict[str, Any]:
        """List prizes, newest first.

        A prize is listed from when the round is settled: only then is its amount certain.
        """
        with transaction() as session:
            rows = prizes_of(
                session,
                current_player_id(),
                status=query.get("status"),
                round_id=query.get("roundId"),
                limit=query["limit"],
                offset=query["offset"],
            )
        return {"prizes": rows, "count": len(rows)}


@blueprint.route(f"/<int(max={LARGEST_ID}):number>")
class OnePrize(MethodView):
    """One prize."""

    @blueprint.response(200, PrizeSchema)
    def get(self, number: int) -> Any:
        """Show one prize by its id."""
        with transaction() as session:
            return prize_of(session, current_player_id(), number)


@blueprint.route(f"/<int(max={LARGEST_ID}):number>/claim")
class Claim(MethodView):
    """Claiming."""

    @blueprint.doc(parameters=[KEY_PARAMETER])
    @blueprint.response(200, ClaimedSchema)
    def post(self, number: int) -> Response:
        """Claim a prize into the balance.

        409 ``already_claimed`` or ``prize_expired``. Open also to whoever excluded herself from playing.
        """

        def claim(session: Session, player_id: int) -> dict[str, Any]:
            prize = claim_prize(session, player_id, number)
            return {"success": True, "prize": prize, "balance": balance(session, player_account(player_id))}

        return carry_out_once(200, ClaimedSchema, claim).response()
