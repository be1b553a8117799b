"""``/api/admin/rounds…``: opening a round, watching it, ending it."""

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from flask.views import MethodView
from marshmallow import Schema, fields
from sqlalchemy.orm import Session

from app.credentials import admin_actor, require_admin, role_required
from app.documentation.declared import refuses
from app.fields import Filled, Moment, Shown, Whole, identifier, one_of, round_state
from app.parsing import Blueprint, path_number
from app.resources.proof_shapes import ExclusionSchema
from app.resources.rounds import RoundSchema, detail
from models.audit import record
from models.credentials import AdminRole
from models.deliveries import counts_by_status
from models.draws import Draw
from models.operators import active_operator_ids, unknown_or_inactive
from models.participation import participations
from models.rounds import Round, request_abort, round_by_id, timeline_of
from models.session import database_now, transaction
from models.settings import settings
from protocol.errors import Conflict, Invalid
from protocol.lifecycle import TRANSITIONS, Deadlines, Trigger
from protocol.timestamps import format_timestamp
from tasks.bell import Bell, ring_after_commit
from tasks.opening import open_round

blueprint = Blueprint("admin_rounds", __name__, url_prefix="/api/admin/rounds", description="Running rounds")
blueprint.before_request(require_admin)

SHORTEST_SALES = timedelta(minutes=1)
FURTHEST = timedelta(days=366)
_TOO_FAR = "More than a year ahead."


class OpenRoundSchema(Schema):
    """A round to open. Without ``operatorIds`` all active operators are invited."""

    operatorIds = fields.List(identifier(), load_default=None)
    sealAt = Moment(required=True)
    sealingDeadline = Moment(required=True)
    escrowDeadline = Moment(required=True)
    scheduledDrawTime = Moment(required=True)
    settleAt = Moment(load_default=None)
    closeAt = Moment(load_default=None)


class StepSchema(Schema):
    """A step a round took."""

    trigger = one_of(Trigger, required=True)
    state = round_state()
    at = Shown(required=True)


class DeadlinesSchema(Schema):
    """When the stages of a round end."""

    sealAt = Shown(required=True)
    sealingDeadline = Shown(required=True)
    escrowDeadline = Shown(required=True)
    scheduledDrawTime = Shown(required=True)
    settleAt = Shown(required=True)
    closeAt = Shown(required=True)


class DeliveryCountsSchema(Schema):
    """How many of a round's webhook deliveries are in each state."""

    pending = Whole(required=True)
    delivered = Whole(required=True)
    failed = Whole(required=True)


class AdminRoundSchema(RoundSchema):
    """A round with what only the people who run it see."""

    deadlines = fields.Nested(DeadlinesSchema, required=True)
    timeline = fields.List(fields.Nested(StepSchema), required=True)
    exclusions = fields.List(fields.Nested(ExclusionSchema), required=True)
    deliveries = fields.Nested(DeliveryCountsSchema, required=True)


class FailRoundSchema(Schema):
    """Why a round is ended."""

    reason = Filled(required=True, longest=500)


class FailRequestedSchema(Schema):
    """The round will be failed and its escrow refunded within seconds."""

    success = fields.Boolean(required=True)
    roundId = Whole(lowest=1, required=True)
    state = round_state("OPEN")


@blueprint.route("")
class Rounds(MethodView):
    """Opening."""

    @role_required(AdminRole.ONCALL)
    @blueprint.arguments(OpenRoundSchema)
    @blueprint.response(201, AdminRoundSchema)
    def post(self, body: dict[str, Any]) -> dict[str, Any]:
        """Open a round."""
        with transaction() as session:
            deadlines = _checked(body, database_now(session))
            operator_ids = _invited(session, body["operatorIds"])
            row = open_round(session, operator_ids, deadlines)
            record(session, admin_actor(), "round.open", f"round {row.id}", operatorIds=operator_ids)
            session.flush()
            return _admin_view(session, row)


@blueprint.route("/<round_id>")
class OneRound(MethodView):
    """Watching."""

    @role_required(AdminRole.ONCALL)
    @blueprint.response(200, AdminRoundSchema)
    def get(self, round_id: str) -> dict[str, Any]:
        """A round with its deadlines, every step it took, exclusions and counts of deliveries."""
        with transaction() as session:
            return _admin_view(session, round_by_id(session, path_number(round_id)))


@blueprint.route("/<round_id>/fail")
class FailRound(MethodView):
    """Ending."""

    @refuses(Conflict("a round that is DRAWN cannot be failed any more", code="wrong_state"))
    @role_required(AdminRole.ONCALL)
    @blueprint.arguments(FailRoundSchema)
    @blueprint.response(202, FailRequestedSchema)
    def post(self, body: dict[str, str], round_id: str) -> dict[str, Any]:
        """Ask for a round to be failed and refunded; a worker does it at once. Not possible once it is drawn."""
        with transaction() as session:
            row = round_by_id(session, path_number(round_id))
            # Alone from the start: two who shared the row and then both wrote to it would wait for each other.
            session.refresh(row, with_for_update={"key_share": True})
            if (row.state, Trigger.ABORTED) not in TRANSITIONS:
                raise Conflict(f"a round that is {row.state.value} cannot be failed any more", code="wrong_state")
            request_abort(session, row.id, body["reason"])
            record(session, admin_actor(), "round.fail", f"round {row.id}", body["reason"])
            ring_after_commit(session, Bell.ROUND, [row.id])
        return {"success": True, "roundId": row.id, "state": row.state.value}


def _invited(session: Session, wanted: list[str] | None) -> list[str]:
    if wanted is None:
        chosen = active_operator_ids(session)
    else:
        chosen = sorted(set(wanted))
        if unknown := unknown_or_inactive(session, chosen):
            message = f"Not active operators: {', '.join(unknown)}."
            raise Invalid("the round cannot be opened", details={"operatorIds": [message]})
    if not chosen:
        raise Invalid("the round cannot be opened", details={"operatorIds": ["There is no active operator to invite."]})
    return chosen


def _checked(body: dict[str, Any], now: datetime) -> Deadlines:
    # Before anything is added to them: the calendar ends with the year 9999.
    far = {name: at for name, at in body.items() if isinstance(at, datetime) and at > now + FURTHEST}
    if far:
        raise Invalid("the deadlines cannot be accepted", details={name: [_TOO_FAR] for name in far})
    settle_at = body["settleAt"] or body["scheduledDrawTime"] + timedelta(seconds=settings().settle_after_seconds)
    close_at = body["closeAt"] or settle_at + timedelta(seconds=settings().close_after_seconds)
    moments = {
        "sealAt": body["sealAt"],
        "sealingDeadline": body["sealingDeadline"],
        "escrowDeadline": body["escrowDeadline"],
        "scheduledDrawTime": body["scheduledDrawTime"],
        "settleAt": settle_at,
        "closeAt": close_at,
    }
    earliest = now if settings().sandbox else now + SHORTEST_SALES
    wrong: dict[str, list[str]] = {}
    if moments["sealAt"] < earliest:
        wrong["sealAt"] = [f"Too early: {format_timestamp(earliest)} at the soonest."]
    if close_at > now + FURTHEST:
        wrong["closeAt"] = [_TOO_FAR]
    names = list(moments)
    for before, after in pairwise(names):
        if moments[after] < moments[before]:
            wrong.setdefault(after, []).append(f"Before {before}.")
    if wrong:
        raise Invalid("the deadlines cannot be accepted", details=wrong)
    return Deadlines(*moments.values())


def _admin_view(session: Session, row: Round) -> dict[str, Any]:
    everybody = participations(session, row.id)
    at = row.deadlines
    return {
        **detail(row, session.get(Draw, row.id), everybody),
        "deadlines": {
            "sealAt": format_timestamp(at.seal_at),
            "sealingDeadline": format_timestamp(at.sealing_deadline),
            "escrowDeadline": format_timestamp(at.escrow_deadline),
            "scheduledDrawTime": format_timestamp(at.scheduled_draw_time),
            "settleAt": format_timestamp(at.settle_at),
            "closeAt": format_timestamp(at.close_at),
        },
        "timeline": [
            {"trigger": step.trigger, "state": step.to_state.value, "at": format_timestamp(step.at)}
            for step in timeline_of(session, row.id)
        ],
        "exclusions": [
            {"operatorId": part.operator_id, "reason": part.excluded_reason}
            for part, _ in everybody
            if part.excluded_reason
        ],
        "deliveries": counts_by_status(session, row.id),
    }
