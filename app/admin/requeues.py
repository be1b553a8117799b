"""``/api/admin/requeues…``: bulk re-queues, watched and cancelled. They are begun under ``/api/admin/deliveries``."""

from typing import Any

from flask.views import MethodView
from marshmallow import Schema

from app.credentials import admin_actor, require_admin, role_required
from app.desk import requeues
from app.documentation.declared import refuses
from app.fields import Filled
from app.parsing import Blueprint, path_number
from app.resources.cursors import Cursor, page_limit
from app.resources.requeues import RequeueListSchema, RequeueSchema
from models.credentials import AdminRole
from models.session import transaction
from protocol.errors import Conflict

blueprint = Blueprint("admin_requeues", __name__, url_prefix="/api/admin/requeues", description="Deliveries")
blueprint.before_request(require_admin)


class RequeuesQuerySchema(Schema):
    """Which page."""

    limit = page_limit()
    cursor = Cursor(int, load_default=None)


class CancelSchema(Schema):
    """Why it is cancelled."""

    reason = Filled(required=True, longest=500)


@blueprint.route("")
class Requeues(MethodView):
    """All of them."""

    @role_required(AdminRole.ONCALL)
    @blueprint.arguments(RequeuesQuerySchema, location="query")
    @blueprint.response(200, RequeueListSchema)
    def get(self, query: dict[str, Any]) -> dict[str, Any]:
        """Bulk re-queues, newest first, page by page: who asked for what and why, and how far it is."""
        with transaction() as session:
            return requeues.listed(session, query["limit"], query["cursor"])


@blueprint.route("/<job_id>")
class OneRequeue(MethodView):
    """One."""

    @role_required(AdminRole.ONCALL)
    @blueprint.response(200, RequeueSchema)
    def get(self, job_id: str) -> dict[str, Any]:
        """A bulk re-queue: how far it is, and what came of the deliveries that it queued again."""
        with transaction() as session:
            return requeues.shown(session, path_number(job_id))


@blueprint.route("/<job_id>/cancel")
class Cancel(MethodView):
    """Ending one."""

    @refuses(Conflict("the re-queue is finished already", code="wrong_state"))
    @role_required(AdminRole.ONCALL)
    @blueprint.arguments(CancelSchema)
    @blueprint.response(200, RequeueSchema)
    def post(self, body: dict[str, str], job_id: str) -> dict[str, Any]:
        """End a bulk re-queue before its time. What it has queued again stays queued; 409 when it is over."""
        with transaction() as session:
            return requeues.cancel(session, admin_actor(), path_number(job_id), body["reason"])
