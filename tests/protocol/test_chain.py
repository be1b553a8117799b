"""The chain of hashes, each held against the exact text it hashes."""

from __future__ import annotations

import random
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from protocol.chain import (
    GENESIS,
    Exclusion,
    ManifestEntry,
    anchor_hash,
    effective_manifest_hash,
    full_manifest_hash,
    round_hash,
)
from protocol.errors import Invalid
from protocol.seed import BeaconRound

A = ManifestEntry("opA", "a1" * 32, 2, "a2" * 32)
B = ManifestEntry("opB", "b1" * 32, 0, "b2" * 32)
ENTRY_A = f'{{"manifestHash":"{"a1" * 32}","operatorId":"opA","ticketCount":2,"ticketsRoot":"{"a2" * 32}"}}'
ENTRY_B = f'{{"manifestHash":"{"b1" * 32}","operatorId":"opB","ticketCount":0,"ticketsRoot":"{"b2" * 32}"}}'
ANCHOR: dict[str, Any] = {
    "round_id": 7,
    "previous_round_hash": GENESIS,
    "full_manifest_hash": "11" * 32,
    "seed_commit": "22" * 32,
    "nonce_commits": {"opB": "44" * 32, "opA": "33" * 32},
    "beacon": None,
    "rules_hash": "55" * 32,
    "sealed_at": "2026-01-02T03:04:05.678Z",
}


def _hash_of(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def test_the_full_manifest_hash_is_the_hash_of_exactly_this_text() -> None:
    text = f'{{"entries":[{ENTRY_A},{ENTRY_B}],"roundId":7,"v":"svc-lottery/v2/manifest-set"}}'
    assert full_manifest_hash(7, [A, B]) == full_manifest_hash(7, iter([B, A])) == _hash_of(text)


def test_entries_are_ordered_by_the_bytes_of_the_operator_id() -> None:
    names = ["10", "9", "A", "Z", "_", "a", "a-", "a.", "aa"]
    entries = [replace(A, operator_id=name) for name in names]
    shuffled = random.Random(3).sample(entries, len(entries))
    assert full_manifest_hash(7, shuffled) == full_manifest_hash(7, entries)


def test_an_operator_cannot_stand_twice() -> None:
    with pytest.raises(Invalid):
        full_manifest_hash(7, [A, B, replace(A, ticket_count=3)])
    with pytest.raises(Invalid):
        effective_manifest_hash(7, "00" * 32, [A], [Exclusion("opB", "missed_escrow")] * 2)
    with pytest.raises(Invalid):
        effective_manifest_hash(7, "00" * 32, [A, B], [Exclusion("opB", "missed_escrow")])


def test_the_anchor_is_the_hash_of_exactly_this_text() -> None:
    text = (
        f'{{"beacon":null,"fullManifestHash":"{"11" * 32}","nonceCommits":['
        f'{{"nonceCommit":"{"33" * 32}","operatorId":"opA"}},'
        f'{{"nonceCommit":"{"44" * 32}","operatorId":"opB"}}],'
        f'"previousRoundHash":"{"00" * 32}","roundId":7,"rulesHash":"{"55" * 32}",'
        f'"sealedAt":"2026-01-02T03:04:05.678Z","seedCommit":"{"22" * 32}","v":"svc-lottery/v2/anchor"}}'
    )
    assert anchor_hash(**ANCHOR) == _hash_of(text)
    beacon = BeaconRound("66" * 32, 1000)
    with_beacon = text.replace('"beacon":null', f'"beacon":{{"chainHash":"{"66" * 32}","round":1000}}')
    assert anchor_hash(**ANCHOR | {"beacon": beacon}) == _hash_of(with_beacon)


def test_every_ingredient_changes_the_anchor() -> None:
    changes: list[dict[str, Any]] = [
        {"round_id": 8},
        {"previous_round_hash": "99" * 32},
        {"full_manifest_hash": "99" * 32},
        {"seed_commit": "99" * 32},
        {"nonce_commits": {}},
        {"beacon": BeaconRound("66" * 32, 1)},
        {"rules_hash": "99" * 32},
        {"sealed_at": "2026-01-02T03:04:05.679Z"},
    ]
    assert len({anchor_hash(**ANCHOR | change) for change in [{}, *changes]}) == len(changes) + 1


def test_the_effective_set_is_the_hash_of_exactly_this_text() -> None:
    text = (
        f'{{"chainedAnchorHash":"{"77" * 32}","entries":[{ENTRY_A}],"exclusions":['
        '{"operatorId":"opB","reason":"missed_escrow"},{"operatorId":"opC","reason":"missed_sealing"}],'
        '"roundId":7,"v":"svc-lottery/v2/effective-set"}'
    )
    exclusions = [Exclusion("opC", "missed_sealing"), Exclusion("opB", "missed_escrow")]
    assert effective_manifest_hash(7, "77" * 32, [A], exclusions) == _hash_of(text)


def test_an_exclusion_has_one_of_three_reasons() -> None:
    for reason in ("missed_sealing", "manifest_mismatch", "missed_escrow"):
        assert Exclusion("opA", reason).reason == reason
    with pytest.raises(Invalid):
        Exclusion("opA", "we did not like it")


def test_the_round_hash_is_the_hash_of_exactly_this_text() -> None:
    settled = (
        f'{{"chainedAnchorHash":"{"77" * 32}","failureReason":null,"roundId":7,'
        f'"settlementHash":"{"88" * 32}","state":"SETTLED","v":"svc-lottery/v2/round"}}'
    )
    assert round_hash(7, "SETTLED", "77" * 32, "88" * 32, None) == _hash_of(settled)
    failed = (
        '{"chainedAnchorHash":null,"failureReason":"no manifests","roundId":7,'
        '"settlementHash":null,"state":"FAILED","v":"svc-lottery/v2/round"}'
    )
    assert round_hash(7, "FAILED", None, None, "no manifests") == _hash_of(failed)


def test_closing_a_round_does_not_change_its_hash() -> None:
    hashes = {round_hash(7, state, "77" * 32, "88" * 32, None) for state in ("SETTLED", "CLOSED")}
    assert len(hashes) == 1


@pytest.mark.parametrize(
    ("state", "anchor", "settlement", "reason"),
    [
        ("DRAWN", "77" * 32, None, None),
        ("SETTLED", None, "88" * 32, None),
        ("SETTLED", "77" * 32, None, None),
        ("CLOSED", "77" * 32, "88" * 32, "odd"),
        ("FAILED", None, None, None),
        ("FAILED", None, None, ""),
        ("FAILED", "77" * 32, "88" * 32, "odd"),
    ],
)
def test_only_a_finished_round_has_a_hash(
    state: str, anchor: str | None, settlement: str | None, reason: str | None
) -> None:
    with pytest.raises(Invalid):
        round_hash(7, state, anchor, settlement, reason)
