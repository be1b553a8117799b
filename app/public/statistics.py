"""``GET /api/public/stats`` (interface section 2.9)."""

from typing import Any

from flask.views import MethodView
from marshmallow import Schema

from app.fields import LARGEST_ODDS_RANGE, Count, Micro, Shown, Whole
from app.parsing import Blueprint
from app.read_cache import cached
from models.jackpot import jackpot
from models.ledger import POOL, balance
from models.session import transaction
from models.statistics import RUNNING, operator_counts, rounds_by_state, tickets_in_running_rounds
from protocol.lifecycle import State
from protocol.odds import odds_range
from protocol.timestamps import format_timestamp

blueprint = Blueprint("public_statistics", __name__, url_prefix="/api/public", description="Statistics")


class StatisticsSchema(Schema):
    """The lottery in figures. ``settledRounds`` counts the closed ones too; ``activeRounds`` are neither settled
    nor failed. ``totalTicketsSold`` are the tickets of all rounds that did not fail, those still selling included;
    ``cumulativeTickets``, which the odds follow, those of settled rounds alone.
    """

    totalRounds = Whole(required=True)
    closedRounds = Whole(required=True)
    settledRounds = Whole(required=True)
    failedRounds = Whole(required=True)
    activeRounds = Whole(required=True)
    totalOperators = Whole(required=True)
    activeOperators = Whole(required=True)
    totalTicketsSold = Whole(required=True)
    jackpotPool = Micro(required=True)
    drawsSinceLastWin = Whole(required=True)
    currentOddsRange = Whole(lowest=1, highest=LARGEST_ODDS_RANGE, required=True)
    cumulativeTickets = Count(required=True)
    protocolLaunchDate = Shown(required=True)


@blueprint.route("/stats")
@cached()
class Statistics(MethodView):
    """The lottery in figures."""

    @blueprint.response(200, StatisticsSchema)
    def get(self) -> dict[str, Any]:
        """Rounds, operators, tickets and the pool, all time."""
        with transaction() as session:
            rounds = rounds_by_state(session)
            operators, active = operator_counts(session)
            lottery = jackpot(session)
            return {
                "totalRounds": sum(rounds.values()),
                "closedRounds": rounds.get(State.CLOSED, 0),
                "settledRounds": rounds.get(State.CLOSED, 0) + rounds.get(State.SETTLED, 0),
                "failedRounds": rounds.get(State.FAILED, 0),
                "activeRounds": sum(rounds.get(state, 0) for state in RUNNING),
                "totalOperators": operators,
                "activeOperators": active,
                "totalTicketsSold": lottery.cumulative_tickets + tickets_in_running_rounds(session),
                "jackpotPool": str(balance(session, POOL)),
                "drawsSinceLastWin": lottery.draws_since_last_win,
                "currentOddsRange": odds_range(lottery.cumulative_tickets),
                "cumulativeTickets": str(lottery.cumulative_tickets),
                "protocolLaunchDate": format_timestamp(lottery.launched_at),
            }
