"""``GET /api/operator/rounds``, ``/rounds/:id`` and ``POST /check-tickets``: an operator's rounds, and what it won."""

from typing import Any

from flask.views import MethodView
from marshmallow import Schema, fields
from sqlalchemy import select

from app.credentials import current_operator_id, require_operator
from app.documentation.declared import refuses
from app.fields import LARGEST_ODDS_RANGE, Shown, Whole, identifier, round_state
from app.parsing import Blueprint, path_number
from app.resources.own_rounds import OwnRoundSchema, own_round
from app.resources.rounds import tickets_on_record
from models.draws import wins_of_operator
from models.expiries import Expiry
from models.participation import Manifest, Participation, participation
from models.rounds import Round, round_by_id
from models.session import transaction
from protocol.errors import Conflict, Forbidden, NotFound
from protocol.lifecycle import DRAWN_STATES
from protocol.timestamps import format_timestamp

blueprint = Blueprint("operator_rounds", __name__, url_prefix="/api/operator", description="Rounds you are invited to")
blueprint.before_request(require_operator)


class InvitedRoundSchema(Schema):
    """A round as an invited operator sees it in the list."""

    id = Whole(lowest=1, required=True)
    state = round_state()
    ticketPriceUsdc = Whole(lowest=1, required=True)
    oddsRange = Whole(lowest=1, highest=LARGEST_ODDS_RANGE, required=True)
    totalTickets = Whole(required=True)
    operatorIds = fields.List(identifier(), required=True)
    scheduledDrawTime = Shown(required=True)


class InvitedRoundsSchema(Schema):
    """The rounds an operator is invited to, newest first (the last 200)."""

    rounds = fields.List(fields.Nested(InvitedRoundSchema), required=True)
    count = Whole(required=True)


class CheckSchema(Schema):
    """Which round."""

    roundId = Whole(lowest=1, required=True)


class WinningTicketSchema(Schema):
    """A ticket that won."""

    ticketId = identifier(required=True)


class CheckedTierSchema(Schema):
    """An operator's winners of one tier."""

    tier = Whole(lowest=1, highest=5, required=True)
    winnerCount = Whole(required=True)
    winners = fields.List(fields.Nested(WinningTicketSchema), required=True)


class CheckedSchema(Schema):
    """All of an operator's winners; ``totalWinners`` counts a ticket once for every tier it won."""

    roundId = Whole(lowest=1, required=True)
    operatorId = identifier(required=True)
    jackpotWinners = fields.List(fields.Nested(WinningTicketSchema), required=True)
    jackpotWinnerCount = Whole(required=True)
    bonusTiers = fields.List(fields.Nested(CheckedTierSchema), required=True)
    totalWinners = Whole(required=True)


@blueprint.route("/rounds")
class InvitedRounds(MethodView):
    """Invitations."""

    @blueprint.response(200, InvitedRoundsSchema)
    def get(self) -> dict[str, Any]:
        """The rounds you are invited to, newest first."""
        with transaction() as session:
            mine = select(Participation.round_id).where(Participation.operator_id == current_operator_id())
            rows = session.scalars(select(Round).where(Round.id.in_(mine)).order_by(Round.id.desc()).limit(200)).all()
            round_ids = [row.id for row in rows]
            on_record = tickets_on_record(session, round_ids)
            invited: dict[int, list[str]] = {round_id: [] for round_id in round_ids}
            for round_id, operator_id in session.execute(
                select(Participation.round_id, Participation.operator_id)
                .where(Participation.round_id.in_(round_ids))
                .order_by(Participation.operator_id)
            ):
                invited[round_id].append(operator_id)
        rounds = [
            {
                "id": row.id,
                "state": row.state.value,
                "ticketPriceUsdc": row.parsed_rules.ticket_price,
                "oddsRange": row.parsed_rules.odds_range,
                "totalTickets": on_record.get(row.id, 0) if row.total_tickets is None else row.total_tickets,
                "operatorIds": invited[row.id],
                "scheduledDrawTime": format_timestamp(row.scheduled_draw_time),
            }
            for row in rows
        ]
        return {"rounds": rounds, "count": len(rounds)}


@blueprint.route("/rounds/<round_id>")
class InvitedRound(MethodView):
    """One invitation."""

    @refuses(Forbidden("your operator was not invited to this round", code="not_invited"))
    @blueprint.response(200, OwnRoundSchema)
    def get(self, round_id: str) -> dict[str, Any]:
        """A round you are invited to: when its stages end, and what is on record of your own part in it."""
        operator_id = current_operator_id()
        with transaction() as session:
            row = round_by_id(session, path_number(round_id))
            part = participation(session, row.id, operator_id, lock=False)
            manifest = session.get(Manifest, (row.id, operator_id))
            return own_round(row, part, manifest, session.get(Expiry, row.id))


@blueprint.route("/check-tickets")
class CheckTickets(MethodView):
    """Winners among one's own tickets."""

    @refuses(
        NotFound("no such round"),
        Forbidden("your operator was not invited to this round", code="not_invited"),
        Conflict("round 7 is OPEN, not drawn yet", code="not_drawn"),
    )
    @blueprint.arguments(CheckSchema)
    @blueprint.response(200, CheckedSchema)
    def post(self, body: dict[str, int]) -> dict[str, Any]:
        """Your winning tickets, once the round is DRAWN."""
        round_id, operator_id = body["roundId"], current_operator_id()
        with transaction() as session:
            row = round_by_id(session, round_id)
            participation(session, round_id, operator_id, lock=False)
            if row.state not in DRAWN_STATES:
                raise Conflict(f"round {round_id} is {row.state.value}, not drawn yet", code="not_drawn")
            won: list[list[dict[str, str]]] = [[] for _ in range(6)]
            for ticket_id, tier in wins_of_operator(session, round_id, operator_id):
                won[tier].append({"ticketId": ticket_id})
        return {
            "roundId": round_id,
            "operatorId": operator_id,
            "jackpotWinners": won[0],
            "jackpotWinnerCount": len(won[0]),
            "bonusTiers": [{"tier": tier, "winnerCount": len(won[tier]), "winners": won[tier]} for tier in range(1, 6)],
            "totalWinners": sum(map(len, won)),
        }
