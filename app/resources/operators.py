"""Operators as they see themselves (interface section 2.7)."""

from typing import Any

from marshmallow import Schema, fields

from app.fields import Micro, Shown, Whole, ethereum_address, identifier
from models.operators import Operator
from protocol.timestamps import format_timestamp


class OperatorSchema(Schema):
    """An operator as everybody sees it."""

    operatorId = identifier(required=True)
    name = fields.String(required=True)
    jurisdiction = fields.String(required=True)
    active = fields.Boolean(required=True)
    reputationScore = Whole(highest=100, required=True)
    totalRoundsParticipated = Whole(required=True)
    totalRoundsWon = Whole(required=True)
    registeredAt = Shown(required=True)


class OperatorDetailSchema(OperatorSchema):
    """The single view."""

    totalRoundsEscrowed = Whole(required=True)
    totalRoundsExcluded = Whole(required=True)
    totalPayoutsOnTime = Whole(required=True)


class OwnProfileSchema(OperatorDetailSchema):
    """What only the operator itself sees."""

    address = ethereum_address(required=True)
    webhookUrl = fields.String(required=True, allow_none=True)
    lastHeartbeat = Shown(required=True, allow_none=True)
    totalPayoutsLate = Whole(required=True)
    onChainId = fields.String(required=True, allow_none=True)
    onChainBondAmount = Micro(required=True, allow_none=True)
    onChainBondStatus = fields.String(required=True, allow_none=True)
    onChainLastAttestation = Shown(required=True, allow_none=True)


def public_view(row: Operator) -> dict[str, Any]:
    """An operator as everybody sees it."""
    return {
        "operatorId": row.id,
        "name": row.name,
        "jurisdiction": row.jurisdiction,
        "active": row.active,
        "reputationScore": row.reputation_score,
        "totalRoundsParticipated": row.rounds_participated,
        "totalRoundsWon": row.rounds_won,
        "registeredAt": format_timestamp(row.registered_at),
    }


def single_view(row: Operator) -> dict[str, Any]:
    """The single view."""
    return {
        **public_view(row),
        "totalRoundsEscrowed": row.rounds_escrowed,
        "totalRoundsExcluded": row.rounds_excluded,
        "totalPayoutsOnTime": row.payouts_on_time,
    }


def own_profile(row: Operator) -> dict[str, Any]:
    """What the operator itself sees."""
    heartbeat, attestation = row.last_heartbeat, row.on_chain_last_attestation
    return {
        **single_view(row),
        "address": row.address,
        "webhookUrl": row.webhook_url,
        "lastHeartbeat": format_timestamp(heartbeat) if heartbeat else None,
        "totalPayoutsLate": row.payouts_late,
        "onChainId": row.on_chain_id,
        "onChainBondAmount": None if row.on_chain_bond_amount is None else str(row.on_chain_bond_amount),
        "onChainBondStatus": row.on_chain_bond_status,
        "onChainLastAttestation": format_timestamp(attestation) if attestation else None,
    }
