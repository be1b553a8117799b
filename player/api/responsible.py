"""``/api/player/limits`` and ``/self-exclusion``: how a player keeps herself from playing too much (interface sections
2.12 and 4.4).

The one rule kept here: what protects the player counts at once; what loosens waits 24 hours, or cannot be asked for.
"""

from typing import Any

from flask.views import MethodView
from marshmallow import Schema, ValidationError, fields, validates_schema
from sqlalchemy.orm import Session

from player.api.accounts import SuccessSchema
from player.api.credentials import current_player_id
from player.api.fields import Amount, Moment, Whole
from player.api.parsing import Blueprint
from player.models.exclusions import LONGEST_DAYS, exclude, excluded_until
from player.models.limits import Standing, ask_for_limits, limits_of
from player.models.players import Player, lock_player, player
from player.models.session import transaction

blueprint = Blueprint("responsible", __name__, url_prefix="/api/player", description="Responsible play")

NAMES = {"dailyLimit": "day", "weeklyLimit": "week", "monthlyLimit": "month"}


class WantedLimitsSchema(Schema):
    """The limits that shall change: micro-USDC, or null for none."""

    dailyLimit = Amount(lowest=0, allow_none=True)
    weeklyLimit = Amount(lowest=0, allow_none=True)
    monthlyLimit = Amount(lowest=0, allow_none=True)

    @validates_schema
    def _names_one(self, data: dict[str, Any], **kwargs: Any) -> None:
        if not data:
            raise ValidationError(f"Name at least one of {', '.join(NAMES)}.")


class PendingLimitSchema(Schema):
    """A looser limit that was asked for."""

    limit = Amount(required=True, allow_none=True, metadata={"description": "micro-USDC, null for none"})
    effectiveAt = Moment(required=True, metadata={"description": "from when on it counts"})


class PendingSchema(Schema):
    """The limits that wait, by name."""

    dailyLimit = fields.Nested(PendingLimitSchema)
    weeklyLimit = fields.Nested(PendingLimitSchema)
    monthlyLimit = fields.Nested(PendingLimitSchema)


class LimitsSchema(Schema):
    """What a player allows herself to spend in a calendar day, week (from Monday) and month, in UTC (interface
    section 2.12): micro-USDC, null for no limit."""

    dailyLimit = Amount(required=True, allow_none=True)
    weeklyLimit = Amount(required=True, allow_none=True)
    monthlyLimit = Amount(required=True, allow_none=True)
    selfExclusionUntil = Moment(required=True, allow_none=True)
    pending = fields.Nested(PendingSchema, required=True, metadata={"description": "looser limits that wait"})


class LimitsSetSchema(SuccessSchema):
    """It is done, and this is how the limits stand."""

    limits = fields.Nested(LimitsSchema, required=True)


class ExclusionWishSchema(Schema):
    """For how long."""

    durationDays = Whole(required=True, lowest=1, highest=LONGEST_DAYS, metadata={"description": "days from now on"})


class ExclusionSchema(SuccessSchema):
    """It is done."""

    selfExclusionUntil = Moment(required=True)


def _shown(session: Session, row: Player, standings: dict[str, Standing]) -> dict[str, Any]:
    by_name = {name: standings[period] for name, period in NAMES.items()}
    pending = {
        name: {"limit": one.next_amount, "effectiveAt": one.next_at} for name, one in by_name.items() if one.next_at
    }
    amounts = {name: one.amount for name, one in by_name.items()}
    return {**amounts, "selfExclusionUntil": excluded_until(session, row), "pending": pending}


@blueprint.route("/limits")
class Limits(MethodView):
    """The player's limits."""

    @blueprint.response(200, LimitsSchema)
    def get(self) -> dict[str, Any]:
        """The limits that count now, and the looser ones that wait."""
        with transaction() as session:
            row = player(session, current_player_id())
            return _shown(session, row, limits_of(session, row.id))

    @blueprint.arguments(WantedLimitsSchema)
    @blueprint.response(200, LimitsSetSchema)
    def post(self, body: dict[str, int | None]) -> dict[str, Any]:
        """Set limits. A first or a lower one counts at once, and cancels a higher one that waits; a higher one, or
        none, counts after 24 hours. Limits that are not named stay."""
        with transaction() as session:
            row = lock_player(session, current_player_id())
            standings = ask_for_limits(session, row, {NAMES[name]: amount for name, amount in body.items()})
            return {"success": True, "limits": _shown(session, row, standings)}


@blueprint.route("/self-exclusion")
class SelfExclusion(MethodView):
    """The player's self-exclusion."""

    @blueprint.arguments(ExclusionWishSchema)
    @blueprint.response(200, ExclusionSchema)
    def post(self, body: dict[str, int]) -> dict[str, Any]:
        """Be barred from buying tickets and paying in. Can be made longer, never shorter: 409
        ``exclusion_shortened``. Prizes can be claimed and withdrawn meanwhile."""
        with transaction() as session:
            row = lock_player(session, current_player_id())
            return {"success": True, "selfExclusionUntil": exclude(session, row, body["durationDays"])}
