"""What webhooks carry: an envelope and, for each event, its data (interface section 6.2).

The one rule kept here: these schemas describe what ``tasks`` sends and touch none of it; a test plays rounds and holds
every body on record against them.
"""

from dataclasses import dataclass
from typing import Any

from marshmallow import Schema, fields
from marshmallow.fields import Field

from app.fields import AsIs, Shown, Whole, hex_hash, identifier, one_of
from app.resources.events import NumbersSchema
from protocol.chain import EXCLUSION_REASONS


def _micro() -> Whole:
    # Webhooks carry amounts as numbers (interface section 6.2), whatever their size.
    return Whole(highest=2**63 - 1, required=True)


class RoundDataSchema(Schema):
    """Which round."""

    roundId = Whole(lowest=1, required=True)


class RoundOpenedDataSchema(RoundDataSchema):
    """A new round takes tickets and manifests."""

    ticketPriceUsdc = Whole(lowest=1, required=True)
    operatorCount = Whole(required=True)
    scheduledDrawTime = Shown(required=True)


class RoundSealingDataSchema(RoundDataSchema):
    """Sales are over; tickets are being recounted."""

    sealingDeadline = Shown(required=True)
    manifestsSubmitted = Whole(required=True)


class SealingDeadlineDataSchema(RoundDataSchema):
    """How many operators made it."""

    operatorsSealed = Whole(required=True)
    operatorsMissed = Whole(required=True)


class SealedDataSchema(RoundDataSchema):
    """How many operators' tickets are sealed."""

    sealedCount = Whole(required=True)


class AnchoredDataSchema(RoundDataSchema):
    """The hash that binds this round's manifests to every round before it."""

    anchorHash = hex_hash(required=True)


class EscrowedDataSchema(RoundDataSchema):
    """What was deposited (micro-USDC), and by how many."""

    totalEscrowed = _micro()
    operatorsDeposited = Whole(required=True)


class EscrowDeadlineDataSchema(RoundDataSchema):
    """The operators that did not pay."""

    operatorsExcluded = fields.List(identifier(), required=True)


class DrawnDataSchema(RoundDataSchema, NumbersSchema):
    """The seed, the six numbers, and the first jackpot-winning ticket; its fields are null when nobody won."""

    drawSeed = hex_hash(required=True)
    winnerIndex = Whole(required=True, allow_none=True)
    winningOperatorId = identifier(required=True, allow_none=True)
    totalTickets = Whole(required=True)


class SettledDataSchema(RoundDataSchema):
    """The SHA-256 of the settlement proof, and sums in micro-USDC."""

    settlementHash = hex_hash(required=True)
    winningOperatorId = identifier(required=True, allow_none=True)
    totalPotUsdc = _micro()
    serviceFeeUsdc = _micro()
    operatorPoolUsdc = _micro()
    winnerBonusUsdc = _micro()
    winnerPayoutUsdc = _micro()


class ClosedDataSchema(RoundDataSchema):
    """What the round came to."""

    totalTickets = Whole(required=True)
    totalOperators = Whole(required=True)


class FailedDataSchema(RoundDataSchema):
    """Why it failed."""

    reason = fields.String(required=True)


class WonDataSchema(RoundDataSchema):
    """The first of the operator's winning tickets in the draw's order, and what it is paid (micro-USDC)."""

    operatorId = identifier(required=True)
    winnerIndex = Whole(required=True)
    bonusUsdc = _micro()
    payoutUsdc = _micro()


class ExcludedDataSchema(RoundDataSchema):
    """Who was excluded, and why."""

    operatorId = identifier(required=True)
    reason = one_of(EXCLUSION_REASONS, required=True)


class HeartbeatMissedDataSchema(Schema):
    """Since when nothing was heard of the operator."""

    operatorId = identifier(required=True)
    lastHeartbeat = Shown(required=True)


@dataclass(frozen=True)
class Told:
    """One event: what happened, and what its data look like."""

    meaning: str
    data: type[Schema]


WEBHOOKS: dict[str, Told] = {
    "round.opened": Told("A round is open for tickets and manifests", RoundOpenedDataSchema),
    "round.sealing": Told("No more tickets or manifests are accepted", RoundSealingDataSchema),
    "round.sealing_deadline": Told("The sealing deadline passed; some may have missed it", SealingDeadlineDataSchema),
    "round.sealed": Told("The set of tickets is fixed", SealedDataSchema),
    "round.anchored": Told("The sealed round is part of the chain of hashes", AnchoredDataSchema),
    "round.escrowed": Told("All operators in the draw deposited their escrow", EscrowedDataSchema),
    "round.escrow_deadline": Told("The escrow deadline passed; who did not pay is out", EscrowDeadlineDataSchema),
    "round.drawn": Told("The numbers are drawn and every winner is known", DrawnDataSchema),
    "round.settled": Told("The money is released", SettledDataSchema),
    "round.closed": Told("The round is complete", ClosedDataSchema),
    "round.failed": Told("The round failed; every deposit goes back", FailedDataSchema),
    "operator.won": Told("You sold a jackpot-winning ticket", WonDataSchema),
    "operator.excluded": Told("You were excluded from a round", ExcludedDataSchema),
    "operator.heartbeat_missed": Told("Nothing was heard of you; send a heartbeat", HeartbeatMissedDataSchema),
}
"""Every event there is, in the order of a round's life."""


def envelope_schema(event: str) -> type[Schema]:
    """The schema of a delivery's body. ``roundId`` is null where an event belongs to no round."""
    data = WEBHOOKS[event].data
    of_a_round = issubclass(data, RoundDataSchema)
    shape: dict[str, Field[Any]] = {
        "event": one_of([event], required=True),
        "roundId": Whole(lowest=1, required=True, allow_none=not of_a_round),
        "timestamp": Shown(required=True),
        "data": AsIs(data, required=True),
    }
    words = event.replace(".", "_").split("_")
    made: type[Schema] = Schema.from_dict(shape, name="".join(word.title() for word in words) + "WebhookSchema")
    made.__doc__ = f"{WEBHOOKS[event].meaning}."
    return made
