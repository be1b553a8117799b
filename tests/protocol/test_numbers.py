"""Winning numbers: the published vectors, uniformity, and the boundary of rejection."""

from __future__ import annotations

import hmac
from collections import Counter
from hashlib import sha256
from itertools import islice
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol import numbers as module
from protocol.errors import Invalid
from protocol.numbers import LABELS, Numbers, acceptance_limit, draw_numbers, number_stream, tiers_won

RANGES = (10_000_000, 1_000_000, 100_000, 10_000, 1_000, 100)
COUNTING = bytes(range(32))


@pytest.mark.parametrize(
    ("seed", "expected"),
    [
        (COUNTING.hex(), (5667640, 815793, 13139, 2750, 332, 95)),
        (
            "ca4e7dd4d8ae3acef2dc41537285201f9c1356fbd3af8d3b2114067bff72495d",
            (6833407, 396458, 13494, 8518, 244, 80),
        ),
        (
            "d44701ac27cfc55b9c04e30c1c09773e7a58da007f4b2255518353f84c3b7928",
            (1419339, 723497, 71564, 8961, 191, 71),
        ),
    ],
)
def test_the_published_vectors(seed: str, expected: tuple[int, ...]) -> None:
    assert tuple(draw_numbers(seed, RANGES)) == expected


def test_the_published_vector_at_the_top_of_the_odds_ladder() -> None:
    assert draw_numbers(COUNTING.hex(), (3_000_000_000, *RANGES[1:])).jackpot == 2214663947


@pytest.mark.parametrize(("label", "range_"), list(zip(LABELS, RANGES, strict=True)))
def test_numbers_are_uniform_by_chi_square_at_99_percent(label: str, range_: int) -> None:
    """A million numbers each, from a fixed list of seeds; large ranges are looked at in a thousand equal
    buckets.
    """
    seeds = [sha256(b"uniformity %d" % position).digest() for position in range(1_000)]
    buckets = min(range_, 1_000)
    width = range_ // buckets
    tally: Counter[int] = Counter()
    for seed in seeds:
        tally.update([(number - 1) // width for number in islice(number_stream(seed, label, range_), 1_000)])
    expected = 1_000_000 / buckets
    assert set(tally) == set(range(buckets))
    chi_square = sum((count - expected) ** 2 / expected for count in tally.values())
    assert chi_square < _critical_value(buckets - 1, 0.99)


def _critical_value(degrees: int, confidence: float) -> float:
    """Wilson and Hilferty's approximation, good to a tenth of a percent at these degrees of freedom."""
    third = 2 / (9 * degrees)
    return degrees * (1 - third + NormalDist().inv_cdf(confidence) * third**0.5) ** 3


def test_the_critical_values_agree_with_the_printed_tables() -> None:
    assert _critical_value(99, 0.99) == pytest.approx(134.642, rel=1e-3)
    assert _critical_value(999, 0.99) == pytest.approx(1105.917, rel=1e-3)


@pytest.mark.parametrize("range_", [1, 2, 3, 100, 10_000_000, 3_000_000_000, 2**255 + 1, 2**256 - 1, 2**256])
def test_the_acceptance_limit_is_the_largest_multiple_of_the_range(range_: int) -> None:
    limit = acceptance_limit(range_)
    assert limit % range_ == 0
    assert 0 <= 2**256 - limit < range_


@pytest.mark.parametrize("range_", [3, 100, 10_000_000, 3_000_000_000, 2**255 + 1])
def test_candidates_from_the_limit_on_are_thrown_away(range_: int, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = acceptance_limit(range_)
    candidates = iter([limit, 2**256 - 1, limit - 1, 0])
    monkeypatch.setattr(module, "_candidates", lambda *_: candidates)
    stream = number_stream(COUNTING, "jackpot", range_)
    assert next(stream) == range_, "the last candidate accepted is the highest number"
    assert next(stream) == 1, "candidate zero is the lowest number"


@given(st.binary(min_size=32, max_size=32), st.integers(2**254, 2**256))
def test_a_number_is_that_of_the_first_candidate_below_the_limit(seed: bytes, range_: int) -> None:
    for counter in range(200):
        message = f"svc-lottery/v2/draw|bonus3|{range_}|{counter}".encode()
        candidate = int.from_bytes(hmac.digest(seed, message, "sha256"), "big")
        if candidate < 2**256 - (2**256 % range_):
            assert next(number_stream(seed, "bonus3", range_)) == 1 + candidate % range_
            return
    raise AssertionError("two hundred rejections in a row cannot be")


@pytest.mark.parametrize("seed", ["", "00" * 31, "AA" * 32, "00" * 32 + " "])
def test_a_draw_seed_is_64_lowercase_hex_digits(seed: str) -> None:
    with pytest.raises(Invalid):
        draw_numbers(seed, RANGES)


@pytest.mark.parametrize("ranges", [RANGES[:5], (*RANGES, 1), (0, *RANGES[1:]), (-1, *RANGES[1:])])
def test_a_draw_has_six_ranges_from_1(ranges: tuple[int, ...]) -> None:
    with pytest.raises(Invalid):
        draw_numbers(COUNTING.hex(), ranges)


def test_numbers_go_by_tier_and_are_published_under_their_labels() -> None:
    drawn = Numbers(10, 11, 12, 13, 14, 15)
    assert list(drawn) == [10, 11, 12, 13, 14, 15]
    assert (drawn[0], drawn[5], len(drawn)) == (10, 15, 6)
    assert drawn.as_hashed() == {
        "jackpotNumber": 10, "bonus1": 11, "bonus2": 12, "bonus3": 13, "bonus4": 14, "bonus5": 15,
    }  # fmt: skip


def test_a_ticket_may_win_in_several_tiers_at_once() -> None:
    drawn = Numbers(1, 2, 3, 4, 5, 6)
    assert tiers_won((1, 9, 3, 9, 9, 6), drawn) == (0, 2, 5)
    assert tiers_won((9, 9, 9, 9, 9, 9), drawn) == ()
    assert tiers_won((6, 5, 4, 9, 2, 1), drawn) == (), "a number counts in its own tier only"
