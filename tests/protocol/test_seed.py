"""Where a draw's randomness comes from."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import pytest

from protocol.errors import Invalid
from protocol.seed import (
    HONEST_LIMITS,
    MODES,
    Beacon,
    BeaconRound,
    draw_seed,
    first_beacon_round,
    nonce_commit,
    seed_commit,
)

SECRET = bytes(range(32))
NONCE = sha256(b"opA nonce").digest()
ANCHOR, EFFECTIVE = "aa" * 32, "bb" * 32
QUICKNET = "52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971"
BEACON = Beacon(QUICKNET, 1000, "fe290beca10872ef2fb164d2aa4442de4566183ec51c56ff3cd603d930e54fdd")


def test_the_secret_is_committed_to_with_the_round() -> None:
    expected = sha256(b"svc-lottery/v2/seed-commit|7|" + SECRET).hexdigest()
    assert seed_commit(7, SECRET) == expected
    assert seed_commit(8, SECRET) != expected


def test_a_nonce_is_committed_to_with_the_round_and_the_operator() -> None:
    expected = sha256(b"svc-lottery/v2/op-commit|7|opA|" + NONCE).hexdigest()
    assert nonce_commit(7, "opA", NONCE) == expected
    assert nonce_commit(7, "opB", NONCE) != expected


def test_the_published_vector_of_mode_commit_reveal() -> None:
    seed = draw_seed(7, "commit-reveal", ANCHOR, EFFECTIVE, SECRET, {"opA": NONCE}, None)
    assert seed == "ca4e7dd4d8ae3acef2dc41537285201f9c1356fbd3af8d3b2114067bff72495d"


def test_the_published_vector_of_mode_drand() -> None:
    seed = draw_seed(7, "drand", ANCHOR, EFFECTIVE, None, {}, BEACON)
    assert seed == "d44701ac27cfc55b9c04e30c1c09773e7a58da007f4b2255518353f84c3b7928"


def test_the_draw_seed_is_the_hash_of_exactly_this_text() -> None:
    text = (
        f'{{"beacon":null,"chainedAnchorHash":"{ANCHOR}","effectiveManifestHash":"{EFFECTIVE}",'
        f'"mode":"commit-reveal","nonces":[{{"nonce":"{NONCE.hex()}","operatorId":"opA"}}],"roundId":7,'
        f'"secret":"{SECRET.hex()}","v":"svc-lottery/v2/draw-seed"}}'
    )
    seed = draw_seed(7, "commit-reveal", ANCHOR, EFFECTIVE, SECRET, {"opA": NONCE}, None)
    assert seed == sha256(text.encode()).hexdigest()


def test_nonces_count_in_the_order_of_operator_ids_by_bytes_however_they_arrive() -> None:
    one = {"a": NONCE, "B": SECRET, "a.": bytes(32)}
    other = dict(reversed(one.items()))
    assert draw_seed(1, "commit-reveal", ANCHOR, EFFECTIVE, SECRET, one, None) == draw_seed(
        1, "commit-reveal", ANCHOR, EFFECTIVE, SECRET, other, None
    )


@pytest.mark.parametrize(
    ("mode", "secret", "nonces", "beacon"),
    [
        ("commit-reveal", None, {}, None),
        ("commit-reveal", SECRET, {}, BEACON),
        ("commit-reveal", SECRET[:31], {}, None),
        ("commit-reveal", SECRET, {"opA": NONCE + b"0"}, None),
        ("drand", SECRET, {}, BEACON),
        ("drand", None, {"opA": NONCE}, BEACON),
        ("drand", None, {}, None),
        ("lava-lamp", SECRET, {}, None),
    ],
)
def test_a_mode_takes_its_own_ingredients_only(mode: str, secret: Any, nonces: Any, beacon: Any) -> None:
    with pytest.raises(Invalid):
        draw_seed(7, mode, ANCHOR, EFFECTIVE, secret, nonces, beacon)


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_secret_or_nonce_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(Invalid):
        seed_commit(7, bytes(length))
    with pytest.raises(Invalid):
        nonce_commit(7, "opA", bytes(length))


def test_a_beacon_is_named_by_a_hash_and_a_round_from_1() -> None:
    for chain_hash, number in (("52db", 1), (QUICKNET.upper(), 1), (QUICKNET, 0), (QUICKNET, True)):
        with pytest.raises(Invalid):
            BeaconRound(chain_hash, number)
    with pytest.raises(Invalid):
        Beacon(QUICKNET, 1, "00")


def test_the_beacon_round_is_the_first_at_or_after_the_later_deadline_and_thirty_seconds() -> None:
    genesis, period = 1_692_803_367, 3
    start = datetime.fromtimestamp(genesis, UTC)
    early = start - timedelta(days=1)

    def round_at(seconds: float) -> int:
        return first_beacon_round(early, start + timedelta(seconds=seconds - 30), genesis, period)

    assert [round_at(seconds) for seconds in (0, 0.001, 3, 3.5, 6)] == [1, 2, 2, 3, 3]
    assert round_at(-500) == 1
    assert first_beacon_round(start + timedelta(days=1), early, genesis, period) == 86_430 // 3 + 1


def test_every_mode_states_its_limits() -> None:
    assert set(HONEST_LIMITS) == set(MODES)
    assert all(limits for limits in HONEST_LIMITS.values())
