"""``GET /api/public/draw…``, ``/sub-prizes`` and ``/history``: draws and their winners, by draw id or round id."""

from typing import Any

from flask.views import MethodView
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.documentation.declared import refuses
from app.parsing import Blueprint, path_number
from app.read_cache import cached
from app.resources.draws import (
    DrawSchema,
    HistorySchema,
    SubPrizesSchema,
    WinnersQuerySchema,
    WinnersSchema,
    breakdown_winner,
    draw_detail,
    draw_id,
    draw_summary,
    winner,
)
from app.resources.paging import paging
from models.draws import Draw, WinningTicket, drawn, winners_by_tier
from models.rounds import Round, round_by_id
from models.session import transaction
from protocol.errors import NotFound
from protocol.lifecycle import DRAWN_STATES
from protocol.settlement import prizes_paid

NO_DRAW = NotFound("no such draw, or it has not been drawn yet")

blueprint = Blueprint("public_draws", __name__, url_prefix="/api/public", description="Draws and winners")


def public_draw(session: Session, any_id: str) -> Draw:
    """A draw by ``draw_<round id>`` or by round id.

    :raises NotFound: no such draw, or not public yet.
    """
    round_id = path_number(any_id.removeprefix("draw_"))
    found = session.scalars(
        select(Draw)
        .join(Round, Round.id == Draw.round_id)
        .where(Draw.round_id == round_id, Round.state.in_(DRAWN_STATES))
    ).first()
    if found is None:
        raise NotFound(NO_DRAW.message)
    return found


@blueprint.route("/draw/<any_id>")
@cached()
class OneDraw(MethodView):
    """One draw."""

    @refuses(NO_DRAW)
    @blueprint.response(200, DrawSchema)
    def get(self, any_id: str) -> dict[str, Any]:
        """The seed, the numbers and the jackpot of a draw."""
        with transaction() as session:
            return draw_detail(public_draw(session, any_id))


@blueprint.route("/draw/<any_id>/winners")
@cached()
class Winners(MethodView):
    """The winners of a draw."""

    @refuses(NO_DRAW)
    @blueprint.arguments(WinnersQuerySchema, location="query")
    @blueprint.response(200, WinnersSchema)
    def get(self, query: dict[str, int | None], any_id: str) -> dict[str, Any]:
        """Winning tickets tier by tier; counts are of all of them, whatever the page."""
        with transaction() as session:
            draw = public_draw(session, any_id)
            rows = _page(session, draw, query)
        counts = draw.winner_counts or [0] * 6
        return {
            "drawId": draw_id(draw.round_id),
            "roundId": draw.round_id,
            "jackpotWon": counts[0] > 0,
            "jackpotWinnerCount": counts[0],
            "jackpotAmount": str(draw.jackpot_amount),
            "subPrizeTiers": [
                {"tier": tier, "winners": [winner(row) for row in won], "count": counts[tier]}
                for tier, won in rows.items()
            ],
            "totalSubPrizeWinners": sum(counts[1:]),
        }


@blueprint.route("/sub-prizes/<any_id>")
@cached()
class SubPrizes(MethodView):
    """What the sub-prizes of a draw pay."""

    @refuses(NO_DRAW)
    @blueprint.arguments(WinnersQuerySchema, location="query")
    @blueprint.response(200, SubPrizesSchema)
    def get(self, query: dict[str, int | None], any_id: str) -> dict[str, Any]:
        """Sub-prizes tier by tier, with what each tier pays and until when a prize can be claimed."""
        with transaction() as session:
            draw = public_draw(session, any_id)
            rules = round_by_id(session, draw.round_id).parsed_rules
            rows = _page(session, draw, query)
        counts, terms = draw.winner_counts or [0] * 6, draw.terms or {}
        prizes = prizes_paid(rules, int(terms["L"]), int(terms["A"]))
        return {
            "drawId": draw_id(draw.round_id),
            "tiers": [
                {
                    "tier": tier,
                    "winnerCount": counts[tier],
                    "totalPayout": str(counts[tier] * prizes[tier - 1]),
                    "winners": [breakdown_winner(row) for row in won],
                }
                for tier, won in rows.items()
            ],
            "totalWinners": sum(counts[1:]),
        }


@blueprint.route("/history")
@cached()
class History(MethodView):
    """All draws."""

    @blueprint.arguments(paging(20), location="query")
    @blueprint.response(200, HistorySchema)
    def get(self, query: dict[str, int]) -> dict[str, Any]:
        """A page of draws, newest first."""
        with transaction() as session:
            draws = [draw_summary(draw) for draw in drawn(session, **query)]
        return {"draws": draws, "count": len(draws), **query}


def _page(session: Session, draw: Draw, query: dict[str, int | None]) -> dict[int, list[WinningTicket]]:
    chosen = query["tier"]
    tiers = [chosen] if chosen else [1, 2, 3, 4, 5]
    return winners_by_tier(session, draw.round_id, tiers, query["limit"] or 1, query["offset"] or 0)
