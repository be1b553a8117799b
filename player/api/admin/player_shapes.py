"""Players and their money as staff sees them.

One rule: the fields that players see of themselves have the same names here.
"""

from dataclasses import asdict
from typing import Any

from marshmallow import Schema, fields

from player.api.fields import Amount, Moment
from player.models.desk.players import PlayerFile


class StaffPlayerSchema(Schema):
    """A player, as staff sees her."""

    id = fields.Integer(required=True)
    email = fields.String(required=True)
    displayName = fields.String(required=True, attribute="display_name")
    kycLevel = fields.String(required=True, attribute="kyc_level", metadata={"description": "none, basic or full"})
    createdAt = Moment(required=True, attribute="created_at")
    suspendedAt = Moment(required=True, allow_none=True, attribute="suspended_at")
    suspendedReason = fields.String(required=True, allow_none=True, attribute="suspended_reason")
    selfExclusionUntil = Moment(required=True, allow_none=True, attribute="self_excluded_until")


class StaffLimitSchema(Schema):
    """How much a player allows herself in a day, a week or a month, and what follows it when."""

    period = fields.String(required=True)
    amount = Amount(required=True, allow_none=True, metadata={"description": "micro-USDC; null: no limit"})
    nextAmount = Amount(required=True, allow_none=True, attribute="next_amount")
    nextAt = Moment(required=True, allow_none=True, attribute="next_at")


class StaffPlayerFileSchema(StaffPlayerSchema):
    """A player with what belongs to her."""

    balance = Amount(required=True, metadata={"description": "micro-USDC"})
    limits = fields.List(fields.Nested(StaffLimitSchema), required=True)
    openSessions = fields.Integer(required=True)
    ticketCount = fields.Integer(required=True)


class StaffTransactionSchema(Schema):
    """A line of a player's statement."""

    id = fields.Integer(required=True)
    type = fields.String(required=True)
    amount = Amount(required=True, metadata={"description": "micro-USDC, below zero when it left the balance"})
    status = fields.String(required=True)
    reference = fields.String(required=True, allow_none=True)
    createdAt = Moment(required=True, attribute="created_at")


class StaffCreditedSchema(Schema):
    """What came of a credit."""

    credited = fields.Boolean(
        required=True, metadata={"description": "false: it had been given before, under the same reference"}
    )
    balance = Amount(required=True, metadata={"description": "micro-USDC, afterwards"})


def shown_file(found: PlayerFile) -> dict[str, Any]:
    """A player's file under the names of ``StaffPlayerFileSchema``."""
    of_player = {field.attribute or name: None for name, field in StaffPlayerSchema._declared_fields.items()}
    return {
        **{name: getattr(found.player, name) for name in of_player},
        "balance": found.balance,
        "limits": [{"period": period, **asdict(standing)} for period, standing in found.limits.items()],
        "openSessions": found.sessions,
        "ticketCount": found.tickets,
    }
