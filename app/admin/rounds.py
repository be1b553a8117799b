"""``/api/admin/rounds…``: opening a round, watching it, ending it, having it tabulated again."""

from typing import Any

from flask.views import MethodView
from marshmallow import Schema, fields

from app.credentials import admin_actor, require_admin, role_required
from app.desk import rounds
from app.documentation.declared import refuses
from app.fields import Filled, Moment, Shown, Whole, identifier, one_of, round_state
from app.parsing import Blueprint, path_number
from app.resources.proof_shapes import ExclusionSchema
from app.resources.rounds import RoundSchema
from app.resources.tabulations import SecondTabulationSchema
from models.credentials import AdminRole
from models.session import transaction
from protocol.errors import Conflict
from protocol.lifecycle import Trigger

blueprint = Blueprint("admin_rounds", __name__, url_prefix="/api/admin/rounds", description="Running rounds")
blueprint.before_request(require_admin)


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
    secondTabulation = fields.Nested(SecondTabulationSchema, required=True)


class FailRoundSchema(Schema):
    """Why a round is ended."""

    reason = Filled(required=True, longest=500)


class FailRequestedSchema(Schema):
    """The round will be failed and its escrow refunded within seconds."""

    success = fields.Boolean(required=True)
    roundId = Whole(lowest=1, required=True)
    state = round_state("OPEN")


class RetabulateSchema(Schema):
    """What was mended."""

    reason = Filled(required=True, longest=500)


class RetabulateRequestedSchema(Schema):
    """The winners will be counted again within seconds; if both counts agree the round is settled when it is due."""

    success = fields.Boolean(required=True)
    roundId = Whole(lowest=1, required=True)
    state = round_state("DRAWN")


@blueprint.route("")
class Rounds(MethodView):
    """Opening."""

    @role_required(AdminRole.ONCALL)
    @blueprint.arguments(OpenRoundSchema)
    @blueprint.response(201, AdminRoundSchema)
    def post(self, body: dict[str, Any]) -> dict[str, Any]:
        """Open a round."""
        operator_ids = body.pop("operatorIds")
        with transaction() as session:
            return rounds.opened(session, admin_actor(), operator_ids, body)


@blueprint.route("/<round_id>")
class OneRound(MethodView):
    """Watching."""

    @role_required(AdminRole.ONCALL)
    @blueprint.response(200, AdminRoundSchema)
    def get(self, round_id: str) -> dict[str, Any]:
        """A round with its deadlines, every step it took, exclusions, counts of deliveries, and how its winners compare
        when they are counted a second time.
        """
        with transaction() as session:
            return rounds.shown(session, path_number(round_id))


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
            return rounds.fail(session, admin_actor(), path_number(round_id), body["reason"])


@blueprint.route("/<round_id>/retabulate")
class RetabulateRound(MethodView):
    """Counting again."""

    @refuses(Conflict("the tabulations agree", code="tabulations_agree"))
    @refuses(Conflict("the round is being tabulated", code="tabulating"))
    @refuses(Conflict("a round that is SETTLED has nothing to tabulate", code="wrong_state"))
    @role_required(AdminRole.ONCALL)
    @blueprint.arguments(RetabulateSchema)
    @blueprint.response(202, RetabulateRequestedSchema)
    def post(self, body: dict[str, str], round_id: str) -> dict[str, Any]:
        """Ask for the second tabulation of a round to be done again, once what made it disagree is mended."""
        with transaction() as session:
            return rounds.retabulate(session, admin_actor(), path_number(round_id), body["reason"])
