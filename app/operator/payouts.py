"""``POST /api/operator/payouts``: prizes that an operator has paid to its players."""

from collections import Counter
from typing import Any

from flask.views import MethodView
from marshmallow import Schema, fields
from marshmallow.validate import Length

from app.credentials import current_operator_id, require_operator
from app.documentation.declared import refuses
from app.fields import Whole, identifier
from app.parsing import Blueprint
from models.claims import Payout, claim_prizes, not_won
from models.participation import participation
from models.rounds import round_by_id
from models.session import transaction
from protocol.errors import Conflict, Forbidden, Invalid, NotFound
from protocol.lifecycle import State

LARGEST_REPORT = 10_000
FAULTS_NAMED = 100

blueprint = Blueprint("operator_payouts", __name__, url_prefix="/api/operator", description="Prizes paid to players")
blueprint.before_request(require_operator)


class PayoutSchema(Schema):
    """A prize that was paid: the ticket and the tier it won in (0: the jackpot)."""

    ticketId = identifier(required=True)
    tier = Whole(lowest=0, highest=5, required=True)


class PayoutsSchema(Schema):
    """A report: 1 to 10,000 prizes of one round."""

    roundId = Whole(lowest=1, required=True)
    payouts = fields.List(
        fields.Nested(PayoutSchema),
        validate=[Length(min=1, max=LARGEST_REPORT)],
        required=True,
    )


class PayoutsAcceptedSchema(Schema):
    """Prizes now on record as claimed, ``late`` of them after their deadline; those claimed before changed nothing."""

    success = fields.Boolean(required=True)
    roundId = Whole(lowest=1, required=True)
    operatorId = identifier(required=True)
    accepted = Whole(required=True)
    alreadyClaimed = Whole(required=True)
    late = Whole(required=True)


@blueprint.route("/payouts")
class Payouts(MethodView):
    """Paid prizes."""

    @refuses(
        NotFound("no such round"),
        Forbidden("your operator was not invited to this round", code="not_invited"),
        Conflict("round 7 is DRAWN, its prizes are not due yet", code="not_settled"),
    )
    @blueprint.arguments(PayoutsSchema)
    @blueprint.response(200, PayoutsAcceptedSchema)
    def post(self, body: dict[str, Any]) -> dict[str, Any]:
        """Report prizes you have paid, once the round is SETTLED. Reporting one again changes nothing and succeeds."""
        round_id, operator_id = body["roundId"], current_operator_id()
        payouts = [(each["ticketId"], each["tier"]) for each in body["payouts"]]
        _refuse(payouts, {payout for payout, times in Counter(payouts).items() if times > 1}, "Named more than once")
        with transaction() as session:
            row = round_by_id(session, round_id)
            participation(session, round_id, operator_id)
            if row.state not in (State.SETTLED, State.CLOSED):
                raise Conflict(f"round {round_id} is {row.state.value}, its prizes are not due yet", code="not_settled")
            _refuse(payouts, set(not_won(session, round_id, operator_id, payouts)), "No such prize of yours")
            claimed = claim_prizes(session, round_id, operator_id, payouts)
        return {
            "success": True,
            "roundId": round_id,
            "operatorId": operator_id,
            "accepted": claimed.accepted,
            "alreadyClaimed": claimed.already_claimed,
            "late": claimed.late,
        }


def _refuse(payouts: list[Payout], wrong: set[Payout], why: str) -> None:
    if wrong:
        faults = [place for place, payout in enumerate(payouts) if payout in wrong]
        details = {
            str(place): {"ticketId": [f"{why}: {payouts[place][0]} in tier {payouts[place][1]}."]}
            for place in faults[:FAULTS_NAMED]
        }
        raise Invalid(f"{len(faults)} of the payouts cannot be accepted", details={"payouts": details})
