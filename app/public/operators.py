"""``GET /api/public/operators`` and ``/operators/:id``."""

from typing import Any

from flask.views import MethodView
from marshmallow import Schema, fields

from app.fields import Whole
from app.parsing import Blueprint
from app.read_cache import cached
from app.resources.operators import OperatorDetailSchema, OperatorSchema, public_view, single_view
from models.operators import operator, operators
from models.session import transaction

blueprint = Blueprint(
    "public_operators", __name__, url_prefix="/api/public/operators", description="Licensed operators"
)


class OperatorListSchema(Schema):
    """Every operator, in the order in which they were registered."""

    operators = fields.List(fields.Nested(OperatorSchema), required=True)
    count = Whole(required=True)


@blueprint.route("")
@cached()
class Operators(MethodView):
    """All operators."""

    @blueprint.response(200, OperatorListSchema)
    def get(self) -> dict[str, Any]:
        """Every operator, suspended ones included."""
        with transaction() as session:
            listed = [public_view(row) for row in operators(session)]
        return {"operators": listed, "count": len(listed)}


@blueprint.route("/<operator_id>")
@cached()
class OneOperator(MethodView):
    """One operator."""

    @blueprint.response(200, OperatorDetailSchema)
    def get(self, operator_id: str) -> dict[str, Any]:
        """An operator with its record."""
        with transaction() as session:
            return single_view(operator(session, operator_id))
