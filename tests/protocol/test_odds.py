"""The odds ladder."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import Invalid
from protocol.odds import LADDER, Milestone, current_milestone, next_milestone, odds_range, odds_text

STEPS = [
    (0, 10_000_000),
    (100_000_000, 100_000_000),
    (1_000_000_000, 300_000_000),
    (10_000_000_000, 1_000_000_000),
    (100_000_000_000, 3_000_000_000),
]


def test_the_ladder_is_the_published_one() -> None:
    assert tuple(Milestone(*step) for step in STEPS) == LADDER


@pytest.mark.parametrize(("cumulative", "range_"), STEPS)
def test_a_step_is_reached_with_exactly_its_tickets(cumulative: int, range_: int) -> None:
    assert odds_range(cumulative) == range_
    assert odds_range(cumulative + 1) == range_
    if cumulative:
        assert odds_range(cumulative - 1) < range_


def test_the_next_step_follows_the_current_one_and_the_last_has_none() -> None:
    assert next_milestone(0) == LADDER[1]
    assert next_milestone(99_999_999) == LADDER[1]
    assert next_milestone(100_000_000) == LADDER[2]
    assert next_milestone(100_000_000_000) is None


def test_odds_are_told_with_thousands_separators() -> None:
    assert odds_text(10_000_000) == "1 in 10,000,000"


def test_tickets_below_zero_are_refused() -> None:
    with pytest.raises(Invalid):
        odds_range(-1)


@given(st.integers(0, 10**12), st.integers(0, 10**12))
def test_more_tickets_never_shorten_the_odds(first: int, second: int) -> None:
    low, high = sorted((first, second))
    assert odds_range(low) <= odds_range(high)
    assert current_milestone(low).cumulative_tickets <= low
