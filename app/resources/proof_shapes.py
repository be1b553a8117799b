"""What a proof bundle looks like (docs/protocol.md, "Proof bundle").

The one rule kept here: these schemas describe and never touch. What was hashed is shown exactly as it was hashed, so
every nested object of the bundle is passed on as it is.
"""

from marshmallow import Schema, fields
from marshmallow.validate import Equal, Length

from app.fields import LARGEST_ODDS_RANGE, AsIs, Micro, Shown, Whole, hex_hash, identifier, one_of, round_state
from app.resources.events import NumbersSchema
from protocol.bundle import VERSION
from protocol.canonical import DOMAIN
from protocol.chain import EXCLUSION_REASONS
from protocol.seed import MODES
from protocol.settlement import Terms

_FIVE = Length(equal=5)


def _share() -> Whole:
    return Whole(highest=10_000, required=True)


class RulesSchema(Schema):
    """The rules a round opened with."""

    v = fields.String(required=True, validate=Equal(f"{DOMAIN}/rules"))
    ticketPriceUsdc = Micro(required=True)
    oddsRange = Whole(lowest=1, highest=LARGEST_ODDS_RANGE, required=True)
    feeBps = _share()
    commissionBps = _share()
    reserveBps = _share()
    winnerBonusBps = _share()
    prizes = fields.List(Micro(), required=True, validate=_FIVE)
    ranges = fields.List(Whole(lowest=1), required=True, validate=_FIVE)


class SealedManifestSchema(Schema):
    """What one operator sealed."""

    operatorId = identifier(required=True)
    manifestJson = fields.String(required=True)
    manifestHash = hex_hash(required=True)
    ticketCount = Whole(required=True)
    ticketsRoot = hex_hash(required=True)
    nonceCommit = hex_hash(required=True, allow_none=True)


class ExclusionSchema(Schema):
    """An operator left out, and why."""

    operatorId = identifier(required=True)
    reason = one_of(EXCLUSION_REASONS, required=True)


class BeaconRoundSchema(Schema):
    """Which value of which public randomness beacon."""

    chainHash = hex_hash(required=True)
    round = Whole(lowest=1, required=True)


class BeaconSchema(BeaconRoundSchema):
    """A beacon's value."""

    randomness = hex_hash(required=True)


class NonceRevealedSchema(Schema):
    """A nonce that an operator committed to and revealed."""

    operatorId = identifier(required=True)
    nonce = hex_hash(required=True)


class SeedSchema(Schema):
    """What the seed was made from; null and empty before the draw."""

    secret = hex_hash(required=True, allow_none=True)
    nonces = fields.List(fields.Nested(NonceRevealedSchema), required=True)
    beacon = AsIs(BeaconSchema, required=True, allow_none=True)


LedgerSchema: type[Schema] = Schema.from_dict(
    {name: Micro(required=True) for name in Terms.__dataclass_fields__}, name="LedgerSchema"
)
LedgerSchema.__doc__ = "The terms of the settlement, micro-USDC (``k`` is a number of tickets)."


class ReserveCreditSchema(Schema):
    """What expired prizes of an earlier round brought into the reserve (micro-USDC)."""

    roundId = Whole(lowest=1, required=True)
    amount = Micro(required=True)


class ProofSchema(Schema):
    """A proof bundle. What is not known yet is null."""

    v = fields.String(required=True, validate=Equal(VERSION))
    roundId = Whole(lowest=1, required=True)
    state = round_state()
    mode = one_of(MODES, required=True)
    honestLimits = fields.List(fields.String(), required=True)
    rules = AsIs(RulesSchema, required=True)
    rulesHash = hex_hash(required=True)
    previousRoundHash = hex_hash(required=True, allow_none=True)
    seedCommit = hex_hash(required=True)
    manifests = fields.List(AsIs(SealedManifestSchema), required=True)
    exclusions = fields.List(AsIs(ExclusionSchema), required=True)
    sealedAt = Shown(required=True, allow_none=True)
    beacon = AsIs(BeaconRoundSchema, required=True, allow_none=True)
    seed = AsIs(SeedSchema, required=True)
    fullManifestHash = hex_hash(required=True, allow_none=True)
    chainedAnchorHash = hex_hash(required=True, allow_none=True)
    effectiveManifestHash = hex_hash(required=True, allow_none=True)
    drawSeed = hex_hash(required=True, allow_none=True)
    numbers = AsIs(NumbersSchema, required=True, allow_none=True)
    winnerCounts = fields.List(Whole(), required=True, allow_none=True, validate=Length(equal=6))
    winnersRoot = hex_hash(required=True, allow_none=True)
    reserveCredits = fields.List(AsIs(ReserveCreditSchema), required=True, allow_none=True)
    ledger = AsIs(LedgerSchema, required=True, allow_none=True)
    settlementHash = hex_hash(required=True, allow_none=True)
    failureReason = fields.String(required=True, allow_none=True)
    roundHash = hex_hash(required=True, allow_none=True)
