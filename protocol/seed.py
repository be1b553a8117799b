"""Where the randomness of a draw comes from, and who was bound to what before.

The rule: every ingredient of the draw seed is committed to (or, for a public beacon, named) before the
tickets are sealed, and revealed after; the seed is a hash of all of them and of the sealed tickets.

Implements docs/protocol.md, section 3 (seed).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from protocol.canonical import DOMAIN, hash_object, is_hash, sha256_hex
from protocol.errors import Invalid

COMMIT_REVEAL = "commit-reveal"
DRAND = "drand"
MODES = (COMMIT_REVEAL, DRAND)

SECRET_BYTES = 32
"""Length of the coordinator's secret and of an operator's nonce, in bytes."""

BEACON_DELAY_SECONDS = 30
"""A beacon round is the first at or after the later of escrow deadline and scheduled draw, plus these
seconds.
"""

HONEST_LIMITS: dict[str, tuple[str, ...]] = {
    COMMIT_REVEAL: (
        "Without an operator nonce, the coordinator together with the operator that seals last could try "
        "many ticket sets and keep the one whose outcome suits them.",
        "One honest operator nonce removes prediction: nobody knows the outcome before it is revealed.",
        "An operator that committed to a nonce may withhold it. The coordinator together with such an "
        "operator could compare the outcome with and without it; withholding is public and costs reputation.",
        "A coordinator that dislikes an outcome could fail the round before it is drawn. That is public, "
        "refunds all escrow, and is part of the next round's hash.",
    ),
    DRAND: (
        "The beacon round is fixed when the round is sealed, before its value exists: nobody has a choice.",
        "If that beacon round never appears, the round fails and escrow is refunded; no other replaces it.",
        "The verifier takes the beacon's randomness from this bundle: compare it with any public relay of "
        "the named chain, whose signature proves it.",
    ),
}
"""What each mode cannot promise; stated in every proof bundle (docs/protocol.md, section 3)."""


@dataclass(frozen=True)
class BeaconRound:
    """Which value of which public randomness beacon will be used: the chain's hash (hex) and the round number
    from 1.
    """

    chain_hash: str
    round: int

    def __post_init__(self) -> None:
        if not is_hash(self.chain_hash):
            raise Invalid("a beacon's chain hash is 64 lowercase hex digits")
        if not isinstance(self.round, int) or isinstance(self.round, bool) or self.round < 1:
            raise Invalid("a beacon round is a whole number from 1")

    def as_anchored(self) -> dict[str, str | int]:
        """The object inside the anchor: `{chainHash, round}`."""
        return {"chainHash": self.chain_hash, "round": self.round}


@dataclass(frozen=True)
class Beacon(BeaconRound):
    """A beacon round together with its `randomness`, 64 lowercase hex digits."""

    randomness: str

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_hash(self.randomness):
            raise Invalid("a beacon's randomness is 64 lowercase hex digits")

    def as_hashed(self) -> dict[str, str | int]:
        """The object inside the draw seed: `{chainHash, round, randomness}`."""
        return {**self.as_anchored(), "randomness": self.randomness}


def seed_commit(round_id: int, secret: bytes) -> str:
    """What the coordinator publishes when a round opens: a hash of its 32-byte `secret` (docs/protocol.md,
    section 3).
    """
    return sha256_hex(f"{DOMAIN}/seed-commit|{round_id}|".encode() + _exactly_32("the secret", secret))


def nonce_commit(round_id: int, operator_id: str, nonce: bytes) -> str:
    """What an operator puts in its manifest to bind itself to a 32-byte `nonce` (docs/protocol.md, section
    3).
    """
    return sha256_hex(f"{DOMAIN}/op-commit|{round_id}|{operator_id}|".encode() + _exactly_32("a nonce", nonce))


def draw_seed(
    round_id: int,
    mode: str,
    chained_anchor_hash: str,
    effective_manifest_hash: str,
    secret: bytes | None,
    nonces: Mapping[str, bytes],
    beacon: Beacon | None,
) -> str:
    """The draw seed, 64 hex digits (docs/protocol.md, section 3).

    `commit-reveal` takes the 32-byte secret, the nonces revealed (operator id to 32 bytes, in any order) and
    no beacon; `drand` takes the beacon alone. Raises Invalid for any other combination.
    """
    if mode == COMMIT_REVEAL:
        if secret is None or beacon is not None:
            raise Invalid("mode commit-reveal needs the secret and no beacon")
        _exactly_32("the secret", secret)
    elif mode == DRAND:
        if secret is not None or nonces or beacon is None:
            raise Invalid("mode drand needs the beacon, and neither secret nor nonces")
    else:
        raise Invalid(f"the mode is {' or '.join(MODES)}, not {mode!r}")
    return hash_object(
        {
            "v": f"{DOMAIN}/draw-seed",
            "roundId": round_id,
            "mode": mode,
            "chainedAnchorHash": chained_anchor_hash,
            "effectiveManifestHash": effective_manifest_hash,
            "secret": None if secret is None else secret.hex(),
            "nonces": [
                {"operatorId": operator_id, "nonce": _exactly_32("a nonce", nonces[operator_id]).hex()}
                for operator_id in sorted(nonces, key=str.encode)
            ],
            "beacon": None if beacon is None else beacon.as_hashed(),
        }
    )


def first_beacon_round(
    escrow_deadline: datetime, scheduled_draw: datetime, genesis_seconds: int, period_seconds: int
) -> int:
    """The beacon round fixed at sealing (docs/protocol.md, section 3): the first emitted at or after the
    later of the two instants plus BEACON_DELAY_SECONDS.

    Round 1 of a chain is emitted at `genesis_seconds` (Unix time), one more every `period_seconds`. Instants
    are aware datetimes.
    """
    earliest = max(escrow_deadline, scheduled_draw).timestamp() + BEACON_DELAY_SECONDS
    # Upside-down floor division rounds up without leaving floats behind.
    return max(1, int(-((genesis_seconds - earliest) // period_seconds)) + 1)


def _exactly_32(what: str, value: bytes) -> bytes:
    if len(value) != SECRET_BYTES:
        raise Invalid(f"{what} is {SECRET_BYTES} bytes, not {len(value)}")
    return value
