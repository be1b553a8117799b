"""The chain of hashes that ties a round to its tickets, its rules and the round before.

The rule: each hash covers everything decided up to then, so nothing can be changed later without changing
every hash after it. Lists are put in order here, by the UTF-8 bytes of the operator id; the order they arrive
in never matters.

Implements docs/protocol.md, section 6 (chain of hashes).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from protocol.canonical import DOMAIN, hash_object
from protocol.errors import Invalid
from protocol.seed import BeaconRound

GENESIS = "0" * 64
"""The previousRoundHash of round 1."""

EXCLUSION_REASONS = ("missed_sealing", "manifest_mismatch", "missed_escrow")
"""Why an invited operator is not in the draw."""


@dataclass(frozen=True)
class ManifestEntry:
    """What one operator sealed: its manifest's hash, how many tickets, and their root (hashes in hex)."""

    operator_id: str
    manifest_hash: str
    ticket_count: int
    tickets_root: str

    def as_hashed(self) -> dict[str, Any]:
        """The entry inside the hashed manifest sets."""
        return {
            "operatorId": self.operator_id,
            "manifestHash": self.manifest_hash,
            "ticketCount": self.ticket_count,
            "ticketsRoot": self.tickets_root,
        }


@dataclass(frozen=True)
class Exclusion:
    """An invited operator that is not in the draw, and why (one of EXCLUSION_REASONS, else Invalid)."""

    operator_id: str
    reason: str

    def __post_init__(self) -> None:
        if self.reason not in EXCLUSION_REASONS:
            raise Invalid(f"an exclusion's reason is one of {', '.join(EXCLUSION_REASONS)}, not {self.reason!r}")


def full_manifest_hash(round_id: int, entries: Iterable[ManifestEntry]) -> str:
    """`fullManifestHash`: every operator that sealed (docs/protocol.md, section 6). Raises Invalid for an
    operator given twice.
    """
    return hash_object({"v": f"{DOMAIN}/manifest-set", "roundId": round_id, "entries": _entries(entries)})


def anchor_hash(
    round_id: int,
    previous_round_hash: str,
    full_manifest_hash: str,
    seed_commit: str,
    nonce_commits: Mapping[str, str],
    beacon: BeaconRound | None,
    rules_hash: str,
    sealed_at: str,
) -> str:
    """`chainedAnchorHash`: all that is fixed when a round is sealed (docs/protocol.md, section 6).

    `nonce_commits` maps the ids of the operators that committed to a nonce to the commit; `beacon` is the
    round to wait for in mode drand, else None; `sealed_at` is the timestamp as shown.
    """
    return hash_object(
        {
            "v": f"{DOMAIN}/anchor",
            "roundId": round_id,
            "previousRoundHash": previous_round_hash,
            "fullManifestHash": full_manifest_hash,
            "seedCommit": seed_commit,
            "nonceCommits": [
                {"operatorId": operator_id, "nonceCommit": nonce_commits[operator_id]}
                for operator_id in sorted(nonce_commits, key=str.encode)
            ],
            "beacon": None if beacon is None else beacon.as_anchored(),
            "rulesHash": rules_hash,
            "sealedAt": sealed_at,
        }
    )


def effective_manifest_hash(
    round_id: int, chained_anchor_hash: str, entries: Iterable[ManifestEntry], exclusions: Iterable[Exclusion]
) -> str:
    """`effectiveManifestHash`: who takes part in the draw, and who does not and why (docs/protocol.md,
    section 6).

    `entries` are the escrowed operators only; `exclusions` are of every reason. Raises Invalid when an
    operator stands in both, or twice in one.
    """
    effective = _entries(entries)
    listed = list(exclusions)
    excluded = {exclusion.operator_id: exclusion.reason for exclusion in listed}
    if len(excluded) != len(listed):
        raise Invalid("an operator is excluded twice")
    if both := excluded.keys() & {entry["operatorId"] for entry in effective}:
        raise Invalid(f"operator {min(both)} is both excluded and in the draw")
    return hash_object(
        {
            "v": f"{DOMAIN}/effective-set",
            "roundId": round_id,
            "chainedAnchorHash": chained_anchor_hash,
            "entries": effective,
            "exclusions": [
                {"operatorId": operator_id, "reason": excluded[operator_id]}
                for operator_id in sorted(excluded, key=str.encode)
            ],
        }
    )


def round_hash(
    round_id: int,
    state: str,
    chained_anchor_hash: str | None,
    settlement_hash: str | None,
    failure_reason: str | None,
) -> str:
    """`roundHash`: what round `round_id` + 1 carries as previousRoundHash (docs/protocol.md, section 6).

    Only a finished round has one: SETTLED, CLOSED (hashed as SETTLED, so closing changes nothing) or FAILED.
    Raises Invalid for other states, for a settled round without its two hashes or with a failure reason, and
    for a failed round that has a settlement or no reason.
    """
    hashed_state = "SETTLED" if state == "CLOSED" else state
    if hashed_state == "SETTLED":
        if chained_anchor_hash is None or settlement_hash is None or failure_reason is not None:
            raise Invalid("a settled round has an anchor, a settlement and no failure reason")
    elif hashed_state == "FAILED":
        if settlement_hash is not None or not failure_reason:
            raise Invalid("a failed round has a reason and no settlement")
    else:
        raise Invalid(f"a round in state {state!r} has no round hash yet")
    return hash_object(
        {
            "v": f"{DOMAIN}/round",
            "roundId": round_id,
            "state": hashed_state,
            "chainedAnchorHash": chained_anchor_hash,
            "settlementHash": settlement_hash,
            "failureReason": failure_reason,
        }
    )


def _entries(entries: Iterable[ManifestEntry]) -> list[dict[str, Any]]:
    ordered = sorted(entries, key=lambda entry: entry.operator_id.encode())
    for before, after in pairwise(ordered):
        if before.operator_id == after.operator_id:
            raise Invalid(f"operator {after.operator_id} stands twice in the manifest set")
    return [entry.as_hashed() for entry in ordered]
