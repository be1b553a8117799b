"""Makes whole rounds for tests: random tickets from a seed, honestly sealed, drawn and settled, with their
proof bundle.

It computes forward what the verifier checks backward, and it uses small ranges so that every tier has
winners.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from protocol import chain, seed
from protocol.canonical import DOMAIN
from protocol.manifest import manifest_hash
from protocol.numbers import Numbers, draw_numbers, tiers_won
from protocol.rules import Rules
from protocol.settlement import Stake, Winner, settle, settlement_hash, settlement_proof, winners_root
from protocol.tickets import Ticket, tickets_root

SMALL = Rules(odds_range=40, ranges=(30, 20, 15, 12, 9), prizes=(60_000_000, 20_000_000, 5_000_000, 3_000_000, 10))
QUICKNET = "52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971"


@dataclass
class Round:
    """A round's proof bundle and the sealed ticket lines of the operators in its draw."""

    bundle: dict[str, Any]
    lines: dict[str, list[bytes]] = field(default_factory=dict)

    def save(self, folder: Path, *, packed: bool = False) -> Path:
        """Writes bundle.json and <operatorId>.ndjson (or .ndjson.gz) into the folder; returns the bundle's
        path.
        """
        for operator_id, lines in self.lines.items():
            content = b"".join(line + b"\n" for line in lines)
            if packed:
                (folder / f"{operator_id}.ndjson.gz").write_bytes(gzip.compress(content, 1, mtime=0))
            else:
                (folder / f"{operator_id}.ndjson").write_bytes(content)
        path = folder / "bundle.json"
        path.write_text(json.dumps(self.bundle), encoding="utf-8")
        return path


def make_round(
    round_id: int = 1,
    *,
    tickets: Mapping[str, int] | None = None,
    excluded: Mapping[str, str] | None = None,
    mode: str = seed.COMMIT_REVEAL,
    nonces: tuple[str, ...] = ("opA",),
    withheld: tuple[str, ...] = (),
    state: str = "CLOSED",
    previous: Round | None = None,
    rules: Rules = SMALL,
    salt: int = 0,
    expired: Mapping[int, int] | None = None,
) -> Round:
    """An honest round after `previous`, in a state from DRAWN on.

    `tickets` says how many each operator sealed, `excluded` who is not in the draw and why, `nonces` who
    committed to a nonce, `withheld` who of these did not reveal it, `expired` what expired of which earlier
    round. The same arguments always make the same
    round.
    """
    dice = random.Random(f"{round_id}/{salt}")
    tickets = {"opA": 40, "opB": 30} if tickets is None else tickets
    excluded = excluded or {}
    secret = None if mode == seed.DRAND else dice.randbytes(32)
    all_nonces = {operator_id: dice.randbytes(32) for operator_id in nonces} if secret else {}
    sold = {operator_id: make_tickets(dice, rules, count) for operator_id, count in tickets.items()}
    lines = {operator_id: [ticket.line(round_id, operator_id) for ticket in own] for operator_id, own in sold.items()}
    manifests = [
        _manifest(round_id, operator_id, lines[operator_id], all_nonces.get(operator_id))
        for operator_id in sorted(tickets)
    ]
    entries = [
        chain.ManifestEntry(row["operatorId"], row["manifestHash"], row["ticketCount"], row["ticketsRoot"])
        for row in manifests
    ]
    exclusions = [chain.Exclusion(operator_id, reason) for operator_id, reason in sorted(excluded.items())]
    effective = [entry for entry in entries if entry.operator_id not in excluded]
    beacon = None if secret else seed.Beacon(QUICKNET, 1000 + round_id, sha256(dice.randbytes(8)).hexdigest())
    seed_commit = seed.seed_commit(round_id, secret or bytes(32))
    previous_hash = previous.bundle["roundHash"] if previous else chain.GENESIS
    sealed_at = f"2026-01-{round_id:02}T10:00:00.123Z"
    full = chain.full_manifest_hash(round_id, entries)
    anchor = chain.anchor_hash(
        round_id,
        previous_hash,
        full,
        seed_commit,
        {row["operatorId"]: row["nonceCommit"] for row in manifests if row["nonceCommit"]},
        beacon,
        rules.hash,
        sealed_at,
    )
    effective_hash = chain.effective_manifest_hash(round_id, anchor, effective, exclusions)
    revealed = {name: nonce for name, nonce in sorted(all_nonces.items()) if name not in withheld}
    draw_seed = seed.draw_seed(round_id, mode, anchor, effective_hash, secret, revealed, beacon)
    numbers = draw_numbers(draw_seed, rules.number_ranges)
    in_draw = {entry.operator_id: sold[entry.operator_id] for entry in effective}
    pool0, reserve0 = _carried(previous)
    credited = expired or {}
    reserve0 += sum(credited.values())
    wins = {operator_id: _wins(own, numbers) for operator_id, own in in_draw.items()}
    counts_by_operator = {operator_id: [len(tier) for tier in tiers] for operator_id, tiers in wins.items()}
    stakes = [Stake(operator_id, len(own)) for operator_id, own in in_draw.items()]
    settled = settle(rules, stakes, counts_by_operator, pool0, reserve0)
    winners = [
        Winner(tier, operator_id, ticket_id, settled.prize_of(tier))
        for operator_id, tiers in wins.items()
        for tier, ids in enumerate(tiers)
        for ticket_id in ids
    ]
    counts = [sum(column) for column in zip(*counts_by_operator.values(), strict=True)]
    root = winners_root(round_id, winners)
    proof = settlement_proof(round_id, anchor, effective_hash, draw_seed, numbers, counts, root, settled.terms)
    bundle = {
        "v": f"{DOMAIN}/proof",
        "roundId": round_id,
        "state": state,
        "mode": mode,
        "honestLimits": list(seed.HONEST_LIMITS[mode]),
        "rules": rules.as_hashed(),
        "rulesHash": rules.hash,
        "previousRoundHash": previous_hash,
        "seedCommit": seed_commit,
        "manifests": manifests,
        "exclusions": [{"operatorId": row.operator_id, "reason": row.reason} for row in exclusions],
        "sealedAt": sealed_at,
        "beacon": beacon.as_anchored() if beacon else None,
        "seed": {
            "secret": secret.hex() if secret else None,
            "nonces": [{"operatorId": name, "nonce": nonce.hex()} for name, nonce in revealed.items()],
            "beacon": beacon.as_hashed() if beacon else None,
        },
        "fullManifestHash": full,
        "chainedAnchorHash": anchor,
        "effectiveManifestHash": effective_hash,
        "drawSeed": draw_seed,
        "numbers": numbers.as_hashed(),
        "winnerCounts": counts,
        "winnersRoot": root,
        "reserveCredits": [{"roundId": number, "amount": str(amount)} for number, amount in sorted(credited.items())],
        "ledger": settled.terms.as_hashed(),
        "settlementHash": settlement_hash(proof),
        "failureReason": None,
        "roundHash": chain.round_hash(round_id, "SETTLED", anchor, settlement_hash(proof), None),
    }
    if state == "DRAWN":
        bundle |= {"settlementHash": None, "roundHash": None}
    return Round(bundle, {operator_id: lines[operator_id] for operator_id in in_draw})


def make_failed_round(round_id: int, previous: Round | None = None) -> Round:
    """A round that failed before anybody sealed."""
    bundle = make_round(round_id, previous=previous).bundle
    unreached = (
        "previousRoundHash", "sealedAt", "fullManifestHash", "chainedAnchorHash", "effectiveManifestHash", "drawSeed",
        "numbers", "winnerCounts", "winnersRoot", "reserveCredits", "ledger", "settlementHash",
    )  # fmt: skip
    reason = "no manifests"
    bundle |= dict.fromkeys(unreached)
    bundle |= {
        "state": "FAILED",
        "manifests": [],
        "seed": {"secret": None, "nonces": [], "beacon": None},
        "failureReason": reason,
        "roundHash": chain.round_hash(round_id, "FAILED", None, None, reason),
    }
    return Round(bundle)


def before_the_draw(drawn: Round, state: str) -> Round:
    """The same round's bundle as it was published in an earlier state (SEALED or ESCROWED)."""
    hidden = ["drawSeed", "numbers", "winnerCounts", "winnersRoot", "reserveCredits", "ledger"]
    hidden += ["settlementHash", "roundHash"]
    if state == "SEALED":
        hidden.append("effectiveManifestHash")
    seed_so_far = drawn.bundle["seed"] | {"secret": None}
    return Round(drawn.bundle | dict.fromkeys(hidden) | {"state": state, "seed": seed_so_far})


def make_tickets(dice: random.Random, rules: Rules, count: int) -> list[Ticket]:
    """Random tickets in order of their ids."""
    jackpot, *bonuses = rules.number_ranges
    return [
        Ticket(
            f"t-{position:06}",
            (dice.randint(1, jackpot), *(dice.randint(1, highest) for highest in bonuses)),  # type: ignore[arg-type]
            dice.random() < 0.5,
        )
        for position in range(count)
    ]


def _manifest(round_id: int, operator_id: str, lines: list[bytes], nonce: bytes | None) -> dict[str, Any]:
    claims = {
        "roundId": round_id,
        "operatorId": operator_id,
        "ticketCount": len(lines),
        "ticketsRoot": tickets_root(lines),
        "note": "café",
    }
    commit = seed.nonce_commit(round_id, operator_id, nonce) if nonce else None
    if commit:
        claims["nonceCommit"] = commit
    text = json.dumps(claims, ensure_ascii=False, indent=1)
    return {
        "operatorId": operator_id,
        "manifestJson": text,
        "manifestHash": manifest_hash(text),
        "ticketCount": len(lines),
        "ticketsRoot": claims["ticketsRoot"],
        "nonceCommit": commit,
    }


def _wins(tickets: list[Ticket], numbers: Numbers) -> list[list[str]]:
    tiers: list[list[str]] = [[] for _ in range(6)]
    for ticket in tickets:
        for tier in tiers_won(ticket.numbers, numbers):
            tiers[tier].append(ticket.ticket_id)
    return tiers


def _carried(previous: Round | None) -> tuple[int, int]:
    if previous is None or previous.bundle["ledger"] is None:
        return 0, 0
    return int(previous.bundle["ledger"]["pool1"]), int(previous.bundle["ledger"]["reserve1"])
