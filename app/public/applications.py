"""``POST /api/public/apply`` and ``GET /api/public/application-status/:id``."""

from typing import Any

from flask import request
from flask.views import MethodView

from app.documentation.declared import reads_credential, refuses
from app.parsing import Blueprint
from app.resources.applications import (
    ApplicationSchema,
    ApplicationStatusSchema,
    AppliedSchema,
    PendingApplicationSchema,
    status_view,
)
from models.applications import application_for_token, apply
from models.session import transaction
from protocol.errors import Conflict, Unauthenticated

blueprint = Blueprint("public_applications", __name__, url_prefix="/api/public", description="Becoming an operator")


@blueprint.route("/apply")
class Apply(MethodView):
    """The application form."""

    @refuses(
        Conflict(
            "an application for this e-mail is already pending",
            code="application_pending",
            applicationId="app_9d41c07ab2e65f38",
        ),
        schema=PendingApplicationSchema,
    )
    @blueprint.arguments(ApplicationSchema)
    @blueprint.response(201, AppliedSchema)
    def post(self, form: dict[str, str | None]) -> dict[str, Any]:
        """Apply to become an operator. The token in the answer is shown only here."""
        with transaction() as session:
            application_id, token = apply(
                session,
                company_name=form["companyName"],
                jurisdiction=form["jurisdiction"],
                gaming_license_number=form["gamingLicenseNumber"],
                contact_email=form["contactEmail"],
                contact_name=form["contactName"],
                ethereum_address=form["ethereumAddress"],
                website=form.get("website"),
                description=form.get("description"),
            )
        return {
            "success": True,
            "applicationId": application_id,
            "applicationToken": token,
            "status": "pending",
            "message": "The application was received and will be reviewed.",
            "warning": "Keep the application token: it is needed to read the status and is not shown again.",
        }


@blueprint.route("/application-status/<application_id>")
class Status(MethodView):
    """What became of an application."""

    @reads_credential("applicationToken")
    @refuses(Unauthenticated("unknown application or wrong application token"))
    @blueprint.response(200, ApplicationStatusSchema)
    def get(self, application_id: str) -> dict[str, Any]:
        """The status, for whoever holds the application's token (header X-Application-Token)."""
        token = request.headers.get("X-Application-Token")
        if token is None:
            raise Unauthenticated("send the application's token (X-Application-Token)")
        with transaction() as session:
            return status_view(application_for_token(session, application_id, token))
