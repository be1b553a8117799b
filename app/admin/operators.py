"""``POST /api/admin/operators/:id/deposits``: recording money that an operator sent."""

from typing import Any

from flask.views import MethodView
from marshmallow import Schema, fields
from sqlalchemy.exc import DataError

from app.credentials import admin_actor, require_admin, role_required
from app.documentation.declared import refuses
from app.fields import Amount, Filled, Micro, identifier
from app.parsing import Blueprint
from models.audit import record
from models.credentials import AdminRole
from models.deposits import deposit
from models.operators import operator
from models.session import transaction
from protocol.errors import Conflict, Invalid
from tasks.bell import Bell, ring_after_commit

blueprint = Blueprint("admin_operators", __name__, url_prefix="/api/admin/operators", description="Operators")
blueprint.before_request(require_admin)


class DepositSchema(Schema):
    """An amount (micro-USDC, as a string) and the reference of the transfer that brought it."""

    amountUsdc = Amount(required=True)
    reference = Filled(required=True, longest=200)


class DepositedSchema(Schema):
    """The deposit on record and the operator's balance (micro-USDC)."""

    operatorId = identifier(required=True)
    amountUsdc = Micro(required=True)
    balanceUsdc = Micro(required=True)
    reference = fields.String(required=True)


@blueprint.route("/<operator_id>/deposits")
class Deposits(MethodView):
    """Deposits."""

    @refuses(Conflict("this reference is on record with another amount", code="deposit_conflict"))
    @role_required(AdminRole.TREASURER)
    @blueprint.arguments(DepositSchema)
    @blueprint.response(200, DepositedSchema)
    def post(self, body: dict[str, Any], operator_id: str) -> dict[str, Any]:
        """Record a deposit. The same reference and amount again changes nothing and succeeds."""
        amount, reference = body["amountUsdc"], body["reference"]
        with transaction() as session:
            row = operator(session, operator_id)
            try:
                made = deposit(session, row.id, amount, reference)
            except DataError:
                # The amount is one the form takes; the sum with what is on the books already no bigint holds.
                raise Invalid(
                    "the deposit cannot be booked", details={"amountUsdc": ["More than the ledger can hold."]}
                ) from None
            if made.new:
                record(
                    session,
                    admin_actor(),
                    "operator.deposit",
                    row.id,
                    reference=reference,
                    amountUsdc=str(amount),
                )
                ring_after_commit(session, Bell.ROUND, made.woken_rounds)
        return {
            "operatorId": row.id,
            "amountUsdc": str(amount),
            "balanceUsdc": str(made.balance),
            "reference": reference,
        }
