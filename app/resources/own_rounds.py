"""A round as one invited operator sees it: when its stages end, and what is on record of the operator's own part.

The one rule kept here: of the operators only the one that asks is spoken of.
"""

from typing import Any

from marshmallow import Schema, fields

from app.fields import LARGEST_ODDS_RANGE, Micro, Shown, Whole, hex_hash, one_of, round_state
from models.expiries import Expiry
from models.participation import MISSED_ESCROW, Manifest, Participation
from models.rounds import Round
from protocol.chain import EXCLUSION_REASONS
from protocol.timestamps import format_timestamp


class EscrowSchema(Schema):
    """Your escrow (micro-USDC): tickets on record × price while you can take part, and what was taken once it was."""

    requiredUsdc = Micro(required=True, allow_none=True)
    depositedUsdc = Micro(required=True, allow_none=True)


class OwnRoundSchema(Schema):
    """A round you are invited to: its deadlines and your own part in it.

    ``ticketsRoot`` is of your tickets as sealed. ``claimDeadline`` is there once the round is SETTLED, if anybody won.
    """

    id = Whole(lowest=1, required=True)
    state = round_state()
    ticketPriceUsdc = Whole(lowest=1, required=True)
    oddsRange = Whole(lowest=1, highest=LARGEST_ODDS_RANGE, required=True)
    rulesHash = hex_hash(required=True)
    sealAt = Shown(required=True)
    sealingDeadline = Shown(required=True)
    escrowDeadline = Shown(required=True)
    scheduledDrawTime = Shown(required=True)
    settleAt = Shown(required=True)
    closeAt = Shown(required=True)
    claimDeadline = Shown(required=True, allow_none=True)
    failureReason = fields.String(required=True, allow_none=True)
    ticketCount = Whole(required=True)
    manifestHash = hex_hash(required=True, allow_none=True)
    ticketsRoot = hex_hash(required=True, allow_none=True)
    nonceCommitted = fields.Boolean(required=True)
    nonceRevealed = fields.Boolean(required=True)
    escrow = fields.Nested(EscrowSchema, required=True)
    excludedReason = one_of(EXCLUSION_REASONS, required=True, allow_none=True)


def own_round(row: Round, part: Participation, manifest: Manifest | None, expiry: Expiry | None) -> dict[str, Any]:
    """The round from the side of the operator whose part this is."""
    rules, at = row.parsed_rules, row.deadlines
    # Who missed the escrow was sealed; who was excluded before it owes nothing and has no tickets in the sealed set.
    within = part.excluded_reason in (None, MISSED_ESCROW)
    sealed = row.sealed_at is not None and manifest is not None and within
    return {
        "id": row.id,
        "state": row.state.value,
        "ticketPriceUsdc": rules.ticket_price,
        "oddsRange": rules.odds_range,
        "rulesHash": row.rules_hash,
        "sealAt": format_timestamp(at.seal_at),
        "sealingDeadline": format_timestamp(at.sealing_deadline),
        "escrowDeadline": format_timestamp(at.escrow_deadline),
        "scheduledDrawTime": format_timestamp(at.scheduled_draw_time),
        "settleAt": format_timestamp(at.settle_at),
        "closeAt": format_timestamp(at.close_at),
        "claimDeadline": format_timestamp(expiry.expires_at) if expiry else None,
        "failureReason": row.failure_reason,
        "ticketCount": part.ticket_count,
        "manifestHash": manifest.manifest_hash if manifest else None,
        "ticketsRoot": manifest.counted_root if manifest and sealed else None,
        "nonceCommitted": manifest is not None and manifest.nonce_commit is not None,
        "nonceRevealed": part.nonce_revealed_at is not None,
        "escrow": {
            "requiredUsdc": str(part.ticket_count * rules.ticket_price) if within else None,
            "depositedUsdc": None if part.escrow_usdc is None else str(part.escrow_usdc),
        },
        "excludedReason": part.excluded_reason,
    }
