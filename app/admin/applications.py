"""``/api/admin/applications…``: reviewing applications."""

from typing import Any

from flask.views import MethodView
from marshmallow import Schema, fields

from app.credentials import admin_actor, require_admin, role_required
from app.desk import applications
from app.documentation.declared import refuses
from app.fields import Text, Whole, identifier, one_of
from app.parsing import Blueprint
from app.resources.applications import ReviewerApplicationSchema
from models.applications import ApplicationStatus
from models.credentials import AdminRole
from models.session import transaction
from protocol.errors import Conflict

blueprint = Blueprint("admin_applications", __name__, url_prefix="/api/admin/applications", description="Applications")
blueprint.before_request(require_admin)


DECIDED = Conflict("the application is approved already", code="already_reviewed")


class ReviewSchema(Schema):
    """Why it was decided so; the applicant reads it."""

    reviewNote = Text(longest=5_000, allow_none=True, load_default=None)


class ReviewedSchema(Schema):
    """The decision; the API key of an approved operator is shown only here."""

    applicationId = identifier(required=True)
    status = one_of([ApplicationStatus.APPROVED, ApplicationStatus.REJECTED], required=True)
    operatorId = identifier(required=True, allow_none=True)
    apiKey = fields.String(required=True, allow_none=True)


class ApplicationsQuerySchema(Schema):
    """Which applications."""

    status = one_of(ApplicationStatus, load_default=None)


class ApplicationListSchema(Schema):
    """Applications, newest first (the last 200)."""

    applications = fields.List(fields.Nested(ReviewerApplicationSchema), required=True)
    count = Whole(required=True)


@blueprint.route("")
class Applications(MethodView):
    """All applications."""

    @role_required(AdminRole.REVIEWER)
    @blueprint.arguments(ApplicationsQuerySchema, location="query")
    @blueprint.response(200, ApplicationListSchema)
    def get(self, query: dict[str, str | None]) -> dict[str, Any]:
        """Applications, newest first."""
        with transaction() as session:
            return applications.listed(session, query["status"])


@blueprint.route("/<application_id>/approve")
class Approve(MethodView):
    """Approval."""

    @refuses(DECIDED)
    @role_required(AdminRole.REVIEWER)
    @blueprint.arguments(ReviewSchema)
    @blueprint.response(200, ReviewedSchema)
    def post(self, body: dict[str, str | None], application_id: str) -> dict[str, Any]:
        """Approve a pending application: makes the operator and its API key, which is shown only here."""
        with transaction() as session:
            return applications.decide(session, admin_actor(), application_id, True, body["reviewNote"])


@blueprint.route("/<application_id>/reject")
class Reject(MethodView):
    """Rejection."""

    @refuses(DECIDED)
    @role_required(AdminRole.REVIEWER)
    @blueprint.arguments(ReviewSchema)
    @blueprint.response(200, ReviewedSchema)
    def post(self, body: dict[str, str | None], application_id: str) -> dict[str, Any]:
        """Reject a pending application."""
        with transaction() as session:
            return applications.decide(session, admin_actor(), application_id, False, body["reviewNote"])
