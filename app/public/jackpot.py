"""``GET /api/public/jackpot``, ``/jackpot-counter`` and ``/odds``."""

from typing import Any

from flask.views import MethodView

from app.parsing import Blueprint
from app.read_cache import cached
from app.resources.jackpot import (
    JackpotCounterSchema,
    JackpotSchema,
    OddsSchema,
    counter_view,
    jackpot_view,
    odds_view,
)
from models.jackpot import jackpot
from models.session import transaction

COUNTER_SECONDS = 1
"""How old the counter may be: the one read whose audience needs no more."""

blueprint = Blueprint("public_jackpot", __name__, url_prefix="/api/public", description="The jackpot and its odds")


@blueprint.route("/jackpot")
@cached()
class Jackpot(MethodView):
    """The jackpot."""

    @blueprint.response(200, JackpotSchema)
    def get(self) -> dict[str, Any]:
        """What the jackpot's pool holds, and when it is drawn for next."""
        with transaction() as session:
            return jackpot_view(session)


@blueprint.route("/jackpot-counter")
@cached(fresh_for=COUNTER_SECONDS)
class JackpotCounter(MethodView):
    """The jackpot for a page's counter."""

    @blueprint.response(200, JackpotCounterSchema)
    def get(self) -> dict[str, Any]:
        """The jackpot in USD, for pages that show it to everybody; made to be cached."""
        with transaction() as session:
            return counter_view(jackpot_view(session))


@blueprint.route("/odds")
@cached()
class Odds(MethodView):
    """The odds of the jackpot."""

    @blueprint.response(200, OddsSchema)
    def get(self) -> dict[str, Any]:
        """Where the lottery stands on the odds ladder."""
        with transaction() as session:
            return odds_view(jackpot(session).cumulative_tickets)
