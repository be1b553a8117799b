"""``/api/rounds/current``, ``/api/jackpot`` and ``/api/results``: what anybody may see, player or not.

The one rule kept here: a request never waits for the coordinator; it shows what the worker last heard, and how old
that is. They are counted by address (player.api.limits).
"""

from typing import Any

from flask.views import MethodView
from marshmallow import Schema, fields

from player.api.fields import Moment, Page
from player.api.parsing import Blueprint
from player.models.session import database_now, transaction
from player.models.showing import Result, jackpot_view, result, results, round_on_sale
from player.settings import settings
from protocol.errors import NotFound

blueprint = Blueprint("rounds", __name__, url_prefix="/api", description="The round on sale, the jackpot, the results")

TIERS = range(1, 6)
_NUMBERS = ("jackpotNumber", "bonus1", "bonus2", "bonus3", "bonus4", "bonus5")


class JackpotSchema(Schema):
    """The jackpot as the coordinator last showed it (interface section 4.1)."""

    jackpot = fields.String(required=True, metadata={"description": "micro-USDC"})
    drawsSinceLastWin = fields.Integer(required=True)
    currentOddsRange = fields.Integer(required=True, metadata={"description": "The jackpot number is 1 to this"})
    nextDrawTime = fields.String(required=True, allow_none=True)
    updatedAt = fields.String(required=True, metadata={"description": "When it last changed at the coordinator"})
    fetchedAt = Moment(required=True, metadata={"description": "When we last asked"})
    ageSeconds = fields.Integer(required=True, metadata={"description": "Seconds since we last asked"})


class CurrentRoundSchema(Schema):
    """The round that tickets are sold for now."""

    roundId = fields.Integer(required=True)
    ticketPriceUsdc = fields.Integer(required=True, metadata={"description": "micro-USDC"})
    oddsRange = fields.Integer(required=True, metadata={"description": "The jackpot number is 1 to this"})
    salesCloseAt = Moment(required=True, metadata={"description": "Tickets are sold until then"})
    scheduledDrawTime = Moment(required=True)
    jackpot = fields.Nested(JackpotSchema, required=True, allow_none=True)


class TierWinnersSchema(Schema):
    """How many prizes of a tier this operator's players won."""

    tier = fields.Integer(required=True, metadata={"description": "1 to 5, or 0 for a share of the jackpot"})
    count = fields.Integer(required=True)


class ResultLinksSchema(Schema):
    """Where the coordinator shows the same, and proves it."""

    round = fields.URL(required=True, require_tld=False)
    draw = fields.URL(required=True, require_tld=False)
    winners = fields.URL(required=True, require_tld=False)
    proof = fields.URL(required=True, require_tld=False)


class ResultSchema(Schema):
    """The winning numbers of a round."""

    roundId = fields.Integer(required=True)
    drawId = fields.String(required=True)
    jackpotNumber = fields.Integer(required=True)
    bonus1 = fields.Integer(required=True)
    bonus2 = fields.Integer(required=True)
    bonus3 = fields.Integer(required=True)
    bonus4 = fields.Integer(required=True)
    bonus5 = fields.Integer(required=True)
    jackpotWon = fields.Boolean(required=True)
    jackpotWinnerCount = fields.Integer(required=True, metadata={"description": "Of all operators"})
    jackpotAmount = fields.String(required=True, allow_none=True, metadata={"description": "micro-USDC"})
    drawnAt = fields.String(required=True, metadata={"description": "When the draw was made"})
    claimDeadline = Moment(required=True, allow_none=True, metadata={"description": "Until when prizes can be claimed"})
    ourWinners = fields.List(
        fields.Nested(TierWinnersSchema), required=True, metadata={"description": "Prizes of our own players, by tier"}
    )
    links = fields.Nested(ResultLinksSchema, required=True)


class ResultsSchema(Schema):
    """Past rounds."""

    results = fields.List(fields.Nested(ResultSchema), required=True)
    count = fields.Integer(required=True, metadata={"description": "How many are in this answer"})


@blueprint.route("/rounds/current")
class CurrentRound(MethodView):
    """The round on sale."""

    @blueprint.response(200, CurrentRoundSchema)
    def get(self) -> dict[str, Any]:
        """Show the round on sale

        Price, range of the jackpot number, until when tickets are sold, when it is drawn, and the jackpot (null until
        the coordinator was first heard). 404 ``no_open_round`` between rounds.
        """
        with transaction() as session:
            found = round_on_sale(session)
            return {
                "roundId": found.id,
                "ticketPriceUsdc": found.ticket_price,
                "oddsRange": found.odds_range,
                "salesCloseAt": found.sales_close_at,
                "scheduledDrawTime": found.scheduled_draw_time,
                "jackpot": _jackpot(session),
            }


@blueprint.route("/jackpot")
class Jackpot(MethodView):
    """The jackpot."""

    @blueprint.response(200, JackpotSchema)
    def get(self) -> dict[str, Any]:
        """Show the jackpot

        As the coordinator last showed it, and how long ago that was. 404 ``not_known_yet`` until it was first heard.
        """
        with transaction() as session:
            shown = _jackpot(session)
        if shown is None:
            raise NotFound("the jackpot is not known yet", code="not_known_yet")
        return shown


@blueprint.route("/results")
class Results(MethodView):
    """Past rounds."""

    @blueprint.arguments(Page, location="query")
    @blueprint.response(200, ResultsSchema)
    def get(self, query: dict[str, int]) -> dict[str, Any]:
        """List the results of past rounds

        Newest first: the rounds this operator took part in, with the winning numbers.
        """
        with transaction() as session:
            shown = [_shown(each) for each in results(session, query["limit"], query["offset"])]
        return {"results": shown, "count": len(shown)}


@blueprint.route("/results/<int:round_id>")
class OneResult(MethodView):
    """One past round."""

    @blueprint.response(200, ResultSchema)
    def get(self, round_id: int) -> dict[str, Any]:
        """Show the result of a round

        The winning numbers, the winners, and where the coordinator proves them. 404 until it is drawn.
        """
        with transaction() as session:
            return _shown(result(session, round_id))


def _jackpot(session: Any) -> dict[str, Any] | None:
    view = jackpot_view(session)
    if view is None:
        return None
    names = ("jackpot", "drawsSinceLastWin", "currentOddsRange", "nextDrawTime", "updatedAt")
    age = (database_now(session) - view.fetched_at).total_seconds()
    shown = {name: view.body.get(name) for name in names}
    return {**shown, "fetchedAt": view.fetched_at, "ageSeconds": max(0, int(age))}


def _shown(found: Result) -> dict[str, Any]:
    draw, public = found.draw, f"{settings().coordinator_url}/api/public"
    names = ("drawId", *_NUMBERS, "jackpotWon", "jackpotWinnerCount", "jackpotAmount")
    draw_id = draw.get("drawId")
    return {
        "roundId": found.round.id,
        **{name: draw.get(name) for name in names},
        "drawnAt": draw.get("createdAt"),
        "claimDeadline": found.round.claim_deadline,
        "ourWinners": [{"tier": tier, "count": found.winners.get(tier, 0)} for tier in (0, *TIERS)],
        "links": {
            "round": f"{public}/rounds/{found.round.id}",
            "draw": f"{public}/draw/{draw_id}",
            "winners": f"{public}/draw/{draw_id}/winners",
            "proof": f"{public}/rounds/{found.round.id}/proof",
        },
    }
