"""``/api/player/profile`` and ``/api/player/kyc``: who the player says she is, and how well that is known."""

from typing import Any

from flask.views import MethodView
from marshmallow import Schema, fields

from player.api.accounts import LONGEST_NAME, PlayerSchema
from player.api.credentials import current_player_id
from player.api.fields import Moment, Text, Whole, one_of
from player.api.parsing import Blueprint
from player.models.kyc import KycRequest, kyc_requests_of, request_kyc
from player.models.players import KYC_LEVELS, Player, lock_player, player
from player.models.session import transaction

blueprint = Blueprint("profile", __name__, url_prefix="/api/player", description="The player herself")


class ProfileChangeSchema(Schema):
    """What a player may change of her profile."""

    displayName = Text(required=True, shortest=1, longest=LONGEST_NAME)


class KycWishSchema(Schema):
    """A request for a higher level."""

    level = one_of(KYC_LEVELS[1:], required=True)
    documentReference = Text(
        shortest=1,
        longest=200,
        load_default=None,
        allow_none=True,
        metadata={"description": "the name the operator gave to documents that were handed in"},
    )


class KycRequestSchema(Schema):
    """A request for a level, and what became of it."""

    id = Whole(required=True)
    level = fields.String(required=True)
    documentReference = fields.String(required=True, allow_none=True, attribute="document_reference")
    status = fields.String(required=True, metadata={"description": "pending, approved or rejected"})
    createdAt = Moment(required=True, attribute="created_at")
    decidedAt = Moment(required=True, allow_none=True, attribute="decided_at")
    reason = fields.String(required=True, allow_none=True, metadata={"description": "the staff's, once decided"})


class KycSchema(Schema):
    """A player's level and her requests, the newest first, 50 at the most."""

    kycLevel = fields.String(required=True)
    requests = fields.List(fields.Nested(KycRequestSchema), required=True)
    count = Whole(required=True)


@blueprint.route("/profile")
class Profile(MethodView):
    """The player's profile."""

    @blueprint.response(200, PlayerSchema)
    def get(self) -> Player:
        """The player's profile."""
        with transaction() as session:
            return player(session, current_player_id())

    @blueprint.arguments(ProfileChangeSchema)
    @blueprint.response(200, PlayerSchema)
    def patch(self, body: dict[str, str]) -> Player:
        """Change the display name."""
        with transaction() as session:
            row = lock_player(session, current_player_id())
            row.display_name = body["displayName"]
            return row


@blueprint.route("/kyc")
class Kyc(MethodView):
    """How well the player is known."""

    @blueprint.response(200, KycSchema)
    def get(self) -> dict[str, Any]:
        """The player's level, and her requests for higher ones."""
        with transaction() as session:
            level = player(session, current_player_id()).kyc_level
            requests = kyc_requests_of(session, current_player_id())
        return {"kycLevel": level, "requests": requests, "count": len(requests)}

    @blueprint.arguments(KycWishSchema)
    @blueprint.response(201, KycRequestSchema)
    def post(self, body: dict[str, Any]) -> KycRequest:
        """Ask for a higher level, which the operator's staff decides. 409 while a request waits, or without need."""
        with transaction() as session:
            row = lock_player(session, current_player_id())
            return request_kyc(session, row, body["level"], body["documentReference"])
