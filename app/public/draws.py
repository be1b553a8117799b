"""``GET /api/public/draw…``: a draw and its winners, by draw id or round id."""

from typing import Any

from flask.views import MethodView
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.parsing import Blueprint, path_number
from app.resources.draws import (
    DrawSchema,
    WinnersQuerySchema,
    WinnersSchema,
    draw_detail,
    draw_id,
    winner,
)
from models.draws import Draw, winners_by_tier
from models.rounds import Round
from models.session import transaction
from protocol.errors import NotFound
from protocol.lifecycle import DRAWN_STATES

blueprint = Blueprint("public_draws", __name__, url_prefix="/api/public/draw", description="Draws and winners")


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
        raise NotFound("no such draw, or it has not been drawn yet")
    return found


@blueprint.route("/<any_id>")
class OneDraw(MethodView):
    """One draw."""

    @blueprint.response(200, DrawSchema)
    def get(self, any_id: str) -> dict[str, Any]:
        """The seed, the numbers and the jackpot of a draw."""
        with transaction() as session:
            return draw_detail(public_draw(session, any_id))


@blueprint.route("/<any_id>/winners")
class Winners(MethodView):
    """The winners of a draw."""

    @blueprint.arguments(WinnersQuerySchema, location="query")
    @blueprint.response(200, WinnersSchema)
    def get(self, query: dict[str, int | None], any_id: str) -> dict[str, Any]:
        """Winning tickets tier by tier; counts are of all of them, whatever the page."""
        chosen = query["tier"]
        tiers = [chosen] if chosen else [1, 2, 3, 4, 5]
        with transaction() as session:
            draw = public_draw(session, any_id)
            rows = winners_by_tier(session, draw.round_id, tiers, query["limit"] or 1, query["offset"] or 0)
        counts = draw.winner_counts or [0] * 6
        return {
            "drawId": draw_id(draw.round_id),
            "roundId": draw.round_id,
            "jackpotWon": counts[0] > 0,
            "jackpotWinnerCount": counts[0],
            "jackpotAmount": str(draw.jackpot_amount),
            "subPrizeTiers": [
                {"tier": tier, "winners": [winner(row) for row in rows[tier]], "count": counts[tier]} for tier in tiers
            ],
            "totalSubPrizeWinners": sum(counts[1:]),
        }
