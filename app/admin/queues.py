"""``/api/admin/queues…``: what waits, and holding it up."""

from typing import Any

from flask.views import MethodView
from marshmallow import Schema

from app.credentials import admin_actor, require_admin, role_required
from app.desk import queues
from app.documentation.declared import refuses
from app.fields import Filled
from app.parsing import Blueprint
from app.resources.queues import QueueListSchema, QueueSchema
from models.credentials import AdminRole
from models.session import transaction
from protocol.errors import Conflict

blueprint = Blueprint("admin_queues", __name__, url_prefix="/api/admin/queues", description="Queues")
blueprint.before_request(require_admin)


class PauseSchema(Schema):
    """Why the queue is paused or goes on."""

    reason = Filled(required=True, longest=500)


@blueprint.route("")
class Queues(MethodView):
    """All queues."""

    @role_required(AdminRole.ONCALL)
    @blueprint.response(200, QueueListSchema)
    def get(self) -> dict[str, Any]:
        """Every queue: how much is due and since when, how much is being done, and whether it is paused."""
        with transaction() as session:
            return queues.listed(session)


@blueprint.route("/<name>/pause")
class Pause(MethodView):
    """Holding up."""

    @refuses(Conflict("the queue deliveries is paused already", code="wrong_state"))
    @role_required(AdminRole.ONCALL)
    @blueprint.arguments(PauseSchema)
    @blueprint.response(200, QueueSchema)
    def post(self, body: dict[str, str], name: str) -> dict[str, Any]:
        """Let no work of a queue be begun. What a worker is at is finished; everything else waits in its row."""
        with transaction() as session:
            return queues.pause_queue(session, admin_actor(), name, body["reason"])


@blueprint.route("/<name>/resume")
class Resume(MethodView):
    """Going on."""

    @refuses(Conflict("the queue deliveries is not paused", code="wrong_state"))
    @role_required(AdminRole.ONCALL)
    @blueprint.arguments(PauseSchema)
    @blueprint.response(200, QueueSchema)
    def post(self, body: dict[str, str], name: str) -> dict[str, Any]:
        """Let a paused queue go on; what is due is rung for at once."""
        with transaction() as session:
            return queues.resume_queue(session, admin_actor(), name, body["reason"])
