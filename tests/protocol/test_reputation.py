"""An operator's reputation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import Invalid
from protocol.reputation import score

COUNTS = st.tuples(*[st.integers(0, 10_000)] * 7)
GOOD = (0, 1, 3)
BAD = (2, 4, 5, 6)


def test_a_newcomer_has_a_hundred() -> None:
    assert score(0, 0, 0, 0, 0, 0) == 100


def test_the_worked_example() -> None:
    """Twenty rounds sealed, eighteen escrowed, two exclusions, fifty prizes on time, ten late, three
    heartbeats missed: 60 x 22 // 24 = 55, 25 x 60 // 70 = 21 and 15 x 30 // 33 = 13.
    """
    assert score(20, 18, 2, 50, 10, 3) == 55 + 21 + 13


def test_a_nonce_withheld_costs_as_much_as_an_exclusion() -> None:
    assert score(20, 18, 2, 50, 10, 3, nonces_withheld=2) == score(20, 18, 4, 50, 10, 3)


@given(COUNTS)
def test_reputation_is_from_0_to_100(counts: tuple[int, ...]) -> None:
    assert 0 <= score(*counts) <= 100


@given(COUNTS, st.sampled_from(range(7)), st.integers(1, 1_000))
def test_good_deeds_never_lower_it_and_bad_ones_never_raise_it(counts: tuple[int, ...], which: int, more: int) -> None:
    changed = tuple(count + more * (place == which) for place, count in enumerate(counts))
    if which in GOOD:
        assert score(*changed) >= score(*counts)
    else:
        assert which in BAD
        assert score(*changed) <= score(*counts)


def test_nothing_is_counted_below_zero() -> None:
    for place in range(7):
        with pytest.raises(Invalid):
            score(*(-1 if place == position else 0 for position in range(7)))
