"""Operators as the people who run the coordinator see them."""

from collections.abc import Sequence
from typing import Any

from marshmallow import Schema, fields

from app.fields import Shown, SignedMicro, Whole, identifier
from app.resources.operators import OwnProfileSchema, own_profile
from models.credentials import OperatorApiKey
from models.operators import Operator
from protocol.timestamps import format_timestamp


class AdminOperatorSchema(OwnProfileSchema):
    """An operator with its balance (micro-USDC; below zero when it owes expired prizes) and what it failed to do."""

    balanceUsdc = SignedMicro(required=True)
    heartbeatsMissed = Whole(required=True)
    noncesWithheld = Whole(required=True)


class ApiKeySchema(Schema):
    """An API key that authenticates now; ``expiresAt`` is null while it has not been replaced."""

    keyId = identifier(required=True)
    createdAt = Shown(required=True)
    expiresAt = Shown(required=True, allow_none=True)


class AdminOperatorDetailSchema(AdminOperatorSchema):
    """The single view: with the API keys in force, newest first. The first signs webhooks."""

    apiKeys = fields.List(fields.Nested(ApiKeySchema), required=True)


class AdminOperatorListSchema(Schema):
    """A page of operators, in the order in which they were registered."""

    operators = fields.List(fields.Nested(AdminOperatorSchema), required=True)
    count = Whole(required=True)


def admin_view(row: Operator, balance: int) -> dict[str, Any]:
    """An operator as it stands in a list."""
    return {
        **own_profile(row),
        "balanceUsdc": str(balance),
        "heartbeatsMissed": row.heartbeats_missed,
        "noncesWithheld": row.nonces_withheld,
    }


def single_admin_view(row: Operator, balance: int, keys: Sequence[OperatorApiKey]) -> dict[str, Any]:
    """An operator by itself."""
    return {**admin_view(row, balance), "apiKeys": [_key_view(key) for key in keys]}


def _key_view(key: OperatorApiKey) -> dict[str, Any]:
    return {
        "keyId": key.id,
        "createdAt": format_timestamp(key.created_at),
        "expiresAt": format_timestamp(key.expires_at) if key.expires_at else None,
    }
