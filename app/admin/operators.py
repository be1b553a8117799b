"""``/api/admin/operators…``: operators, their API keys, and recording money that they sent."""

from typing import Any

from flask.views import MethodView
from marshmallow import Schema, fields

from app.credentials import admin_actor, require_admin, role_required
from app.desk import deposits, operators
from app.documentation.declared import refuses
from app.fields import Amount, Filled, Micro, Shown, SignedMicro, Text, Truth, Whole, identifier
from app.parsing import Blueprint
from app.resources.admin_operators import AdminOperatorDetailSchema, AdminOperatorListSchema
from app.resources.paging import paging
from models.credentials import AdminRole
from models.session import transaction
from protocol.errors import Conflict

blueprint = Blueprint("admin_operators", __name__, url_prefix="/api/admin/operators", description="Operators")
blueprint.before_request(require_admin)

READERS = (AdminRole.REVIEWER, AdminRole.ONCALL)


class ActiveSchema(Schema):
    """Whether the operator is let in, and why it is changed."""

    active = Truth(required=True)
    reason = Filled(required=True, longest=500)


class RotateKeySchema(Schema):
    """For how many seconds the keys in force go on working beside the new one; 0 ends them at once."""

    overlapSeconds = Whole(highest=operators.LONGEST_OVERLAP_SECONDS, required=True)
    reason = Text(longest=500, allow_none=True, load_default=None)


class RotatedKeySchema(Schema):
    """The new API key, shown only here, and when the earlier ones end; null when none was in force."""

    apiKey = fields.String(required=True)
    previousKeyExpiresAt = Shown(required=True, allow_none=True)


class DepositSchema(Schema):
    """An amount (micro-USDC, as a string) and the reference of the transfer that brought it."""

    amountUsdc = Amount(required=True)
    reference = Filled(required=True, longest=200)


class DepositedSchema(Schema):
    """The deposit on record and the operator's balance (micro-USDC)."""

    operatorId = identifier(required=True)
    amountUsdc = Micro(required=True)
    balanceUsdc = SignedMicro(required=True)
    reference = fields.String(required=True)


@blueprint.route("")
class Operators(MethodView):
    """All operators."""

    @role_required(*READERS)
    @blueprint.arguments(paging(50), location="query")
    @blueprint.response(200, AdminOperatorListSchema)
    def get(self, page: dict[str, int]) -> dict[str, Any]:
        """Operators in the order in which they were registered, suspended ones included."""
        with transaction() as session:
            return operators.listed(session, page["limit"], page["offset"])


@blueprint.route("/<operator_id>")
class OneOperator(MethodView):
    """One operator."""

    @role_required(*READERS)
    @blueprint.response(200, AdminOperatorDetailSchema)
    def get(self, operator_id: str) -> dict[str, Any]:
        """An operator with its balance and the API keys in force (never the keys themselves)."""
        with transaction() as session:
            return operators.shown(session, operator_id)

    @role_required()
    @blueprint.arguments(ActiveSchema)
    @blueprint.response(200, AdminOperatorDetailSchema)
    def patch(self, body: dict[str, Any], operator_id: str) -> dict[str, Any]:
        """Suspend an operator or let it in again. A suspended one is invited to no new round and refused with 403."""
        with transaction() as session:
            return operators.activate(session, admin_actor(), operator_id, body["active"], body["reason"])


@blueprint.route("/<operator_id>/rotate-key")
class RotateKey(MethodView):
    """A new API key."""

    @role_required()
    @blueprint.arguments(RotateKeySchema)
    @blueprint.response(200, RotatedKeySchema)
    def post(self, body: dict[str, Any], operator_id: str) -> dict[str, Any]:
        """Replace the operator's API key. Webhooks are signed with the new one at once; tokens end with their key."""
        with transaction() as session:
            return operators.rotate_key(session, admin_actor(), operator_id, body["overlapSeconds"], body["reason"])


@blueprint.route("/<operator_id>/deposits")
class Deposits(MethodView):
    """Deposits."""

    @refuses(Conflict("this reference is on record with another amount", code="deposit_conflict"))
    @role_required(AdminRole.TREASURER)
    @blueprint.arguments(DepositSchema)
    @blueprint.response(200, DepositedSchema)
    def post(self, body: dict[str, Any], operator_id: str) -> dict[str, Any]:
        """Record a deposit. The same reference and amount again changes nothing and succeeds."""
        with transaction() as session:
            return deposits.record_deposit(session, admin_actor(), operator_id, body["amountUsdc"], body["reference"])
