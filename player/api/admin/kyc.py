"""``/api/admin/kyc``: players' requests for a higher KYC level, and deciding them.

One rule: the reason given to the player is the reason in the audit log.
"""

from typing import Any

from flask.views import MethodView
from marshmallow import Schema, fields

from player.api.admin.shapes import listed, listing, of_player, why
from player.api.credentials import current_staff
from player.api.fields import Moment, Page, Truth, one_of
from player.api.parsing import Blueprint
from player.models.desk.players import find_kyc_requests
from player.models.kyc import STATUSES, decide_kyc
from player.models.session import transaction
from player.models.staff import note

blueprint = Blueprint("admin_kyc", __name__, url_prefix="/api/admin/kyc", description="KYC requests")


class StaffKycQuerySchema(Page):
    """Which requests."""

    player_id = of_player()
    status = one_of(STATUSES, load_default=None)


class StaffKycDecisionSchema(Schema):
    """What was decided, and why."""

    approve = Truth(required=True, metadata={"description": "true raises the player's level, false rejects"})
    reason = why()


class StaffKycRequestSchema(Schema):
    """A request for a level, and what became of it."""

    id = fields.Integer(required=True)
    playerId = fields.Integer(required=True, attribute="player_id")
    level = fields.String(required=True)
    documentReference = fields.String(required=True, allow_none=True, attribute="document_reference")
    status = fields.String(required=True, metadata={"description": "pending, approved or rejected"})
    createdAt = Moment(required=True, attribute="created_at")
    decidedAt = Moment(required=True, allow_none=True, attribute="decided_at")
    decidedBy = fields.String(required=True, allow_none=True, attribute="decided_by")
    reason = fields.String(required=True, allow_none=True, metadata={"description": "The player sees it too"})


@blueprint.route("")
class KycRequests(MethodView):
    """All requests."""

    @blueprint.arguments(StaffKycQuerySchema, location="query")
    @blueprint.response(200, listing("StaffKycRequests", "requests", StaffKycRequestSchema))
    def get(self, query: dict[str, Any]) -> dict[str, Any]:
        """List KYC requests

        Those that wait first, the oldest of them at the top; then those that were decided, newest first.
        """
        with transaction() as session:
            return listed("requests", find_kyc_requests(session, **query))


@blueprint.route("/<int:request_id>/decide")
class KycDecision(MethodView):
    """Deciding one."""

    @blueprint.arguments(StaffKycDecisionSchema)
    @blueprint.response(200, StaffKycRequestSchema)
    def post(self, body: dict[str, Any], request_id: int) -> Any:
        """Decide a KYC request

        An approval raises the player's level at once. 409 ``kyc_decided``: somebody decided it before.
        """
        with transaction() as session:
            found = decide_kyc(session, request_id, body["approve"], current_staff(), body["reason"])
            action = "kyc.approve" if body["approve"] else "kyc.reject"
            details = {"requestId": request_id, "level": found.level}
            note(session, current_staff(), action, f"player:{found.player_id}", body["reason"], details)
            return found
