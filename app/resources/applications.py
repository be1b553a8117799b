"""Applications as read and shown (interface section 2.8)."""

from typing import Any

from flask import has_request_context, url_for
from marshmallow import Schema, fields
from marshmallow.validate import Regexp

from app.fields import Filled, Shown, Text, described, ethereum_address, identifier, one_of
from app.resources.errors import ErrorSchema
from models.applications import Application, ApplicationStatus
from models.settings import settings
from protocol.timestamps import format_timestamp


class ApplicationSchema(Schema):
    """The form a company fills in."""

    companyName = Filled(required=True, longest=200)
    jurisdiction = Filled(required=True, longest=200)
    gamingLicenseNumber = Filled(required=True, longest=200)
    contactEmail = fields.Email(required=True, validate=Regexp(r"^[^\0\s]{3,254}\Z"))
    contactName = Filled(required=True, longest=200)
    ethereumAddress = ethereum_address(required=True)
    website = fields.URL(schemes={"http", "https"}, allow_none=True, validate=Regexp(r"^[^\0\s]{1,2000}\Z"))
    description = Text(longest=10_000, allow_none=True)


class AppliedSchema(Schema):
    """The application is on record."""

    success = fields.Boolean(required=True)
    applicationId = identifier(required=True)
    applicationToken = fields.String(required=True)
    status = one_of([ApplicationStatus.PENDING], required=True)
    message = fields.String(required=True)
    warning = fields.String(required=True)


class PendingApplicationSchema(ErrorSchema):
    """An application for the same e-mail is pending: this one."""

    applicationId = identifier(required=True)


class OnboardingSchema(Schema):
    """What an approved operator does next."""

    step1 = fields.String(required=True)
    step2 = fields.String(required=True)
    step3 = fields.String(required=True)
    step4 = fields.String(required=True)
    step5 = fields.String(required=True)
    sdkDocs = fields.String(**described({"required": True}, format="uri"))


class ApplicationStatusSchema(Schema):
    """What became of an application; ``operatorId`` and ``onboarding`` once it is approved."""

    applicationId = identifier(required=True)
    companyName = fields.String(required=True)
    status = one_of(ApplicationStatus, required=True)
    submittedAt = Shown(required=True)
    reviewedAt = Shown(required=True, allow_none=True)
    reviewNote = fields.String(required=True, allow_none=True)
    operatorId = identifier()
    onboarding = fields.Nested(OnboardingSchema)


class ReviewerApplicationSchema(ApplicationStatusSchema):
    """An application with all that the company wrote, for whoever reviews it."""

    jurisdiction = fields.String(required=True)
    gamingLicenseNumber = fields.String(required=True)
    contactEmail = fields.String(required=True)
    contactName = fields.String(required=True)
    ethereumAddress = ethereum_address(required=True)
    website = fields.String(required=True, allow_none=True)
    description = fields.String(required=True, allow_none=True)


def _guide() -> str:
    # As whoever asks reaches us. The command line reaches us without an address.
    return url_for("documentation.guide", _external=True) if has_request_context() else "/docs/guide"


def reviewer_view(row: Application) -> dict[str, Any]:
    """What a reviewer sees."""
    return {
        **status_view(row),
        "jurisdiction": row.jurisdiction,
        "gamingLicenseNumber": row.gaming_license_number,
        "contactEmail": row.contact_email,
        "contactName": row.contact_name,
        "ethereumAddress": row.ethereum_address,
        "website": row.website,
        "description": row.description,
    }


def status_view(row: Application) -> dict[str, Any]:
    """What the applicant sees."""
    shown: dict[str, Any] = {
        "applicationId": row.id,
        "companyName": row.company_name,
        "status": row.status,
        "submittedAt": format_timestamp(row.submitted_at),
        "reviewedAt": format_timestamp(row.reviewed_at) if row.reviewed_at else None,
        "reviewNote": row.review_note,
    }
    if row.status == ApplicationStatus.APPROVED:
        shown["operatorId"] = row.operator_id
        shown["onboarding"] = {
            "step1": "Obtain your API key from the coordinator's staff; it is shown once.",
            "step2": "Exchange it for an access token: POST /api/auth/operator/login.",
            "step3": "Register your webhook: PUT /api/operator/webhook.",
            "step4": "Send heartbeats: POST /api/operator/heartbeat.",
            "step5": "Submit tickets and a manifest to your first round: POST /api/operator/tickets.",
            "sdkDocs": settings().sdk_docs_url or _guide(),
        }
    return shown
