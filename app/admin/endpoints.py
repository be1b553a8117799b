"""``/api/admin/endpoints…``: operators' webhook endpoints, and holding one up."""

from typing import Any

from flask.views import MethodView
from marshmallow import Schema

from app.credentials import admin_actor, require_admin, role_required
from app.desk import endpoints
from app.documentation.declared import refuses
from app.fields import Filled, one_of
from app.parsing import Blueprint
from app.resources.cursors import Cursor, page_limit
from app.resources.endpoints import EndpointListSchema, EndpointSchema
from models.credentials import AdminRole
from models.endpoint_search import EndpointState
from models.session import transaction
from protocol.errors import Conflict

blueprint = Blueprint("admin_endpoints", __name__, url_prefix="/api/admin/endpoints", description="Endpoints")
blueprint.before_request(require_admin)


class EndpointsQuerySchema(Schema):
    """Which endpoints, and which page of them."""

    state = one_of(EndpointState, load_default=None)
    limit = page_limit()
    cursor = Cursor(str, load_default=None)


class HoldSchema(Schema):
    """Why the endpoint is paused or goes on."""

    reason = Filled(required=True, longest=500)


@blueprint.route("")
class Endpoints(MethodView):
    """All of them."""

    @role_required(AdminRole.ONCALL)
    @blueprint.arguments(EndpointsQuerySchema, location="query")
    @blueprint.response(200, EndpointListSchema)
    def get(self, query: dict[str, Any]) -> dict[str, Any]:
        """Every operator's webhook endpoint: how it is doing, what waits for it, and whether somebody paused it."""
        state = EndpointState(query["state"]) if query["state"] else None
        with transaction() as session:
            return endpoints.listed(session, state, query["limit"], query["cursor"])


@blueprint.route("/<operator_id>/pause")
class Pause(MethodView):
    """Holding up."""

    @refuses(Conflict("the endpoint of op_5c1f8a90d2b34e76 is paused already", code="wrong_state"))
    @role_required(AdminRole.ONCALL)
    @blueprint.arguments(HoldSchema)
    @blueprint.response(200, EndpointSchema)
    def post(self, body: dict[str, str], operator_id: str) -> dict[str, Any]:
        """Send an operator nothing. What is being sent is finished; the rest waits, and loses no attempt."""
        with transaction() as session:
            return endpoints.pause(session, admin_actor(), operator_id, body["reason"])


@blueprint.route("/<operator_id>/resume")
class Resume(MethodView):
    """Going on."""

    @refuses(Conflict("the endpoint of op_5c1f8a90d2b34e76 is neither paused nor held back from", code="wrong_state"))
    @role_required(AdminRole.ONCALL)
    @blueprint.arguments(HoldSchema)
    @blueprint.response(200, EndpointSchema)
    def post(self, body: dict[str, str], operator_id: str) -> dict[str, Any]:
        """Send to an operator again, at once, whether somebody paused it or its failures have opened the breaker."""
        with transaction() as session:
            return endpoints.resume(session, admin_actor(), operator_id, body["reason"])
