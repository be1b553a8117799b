"""Interface section 2.5: the odds ladder, seen in the rounds that open on each of its steps and just before them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.contract.world import World

PUBLISHED = [
    (0, 10_000_000),
    (100_000_000, 100_000_000),
    (1_000_000_000, 300_000_000),
    (10_000_000_000, 1_000_000_000),
    (100_000_000_000, 3_000_000_000),
]


@pytest.mark.parametrize(("cumulative", "odds"), PUBLISHED, ids=[f"{n:,} → {odds:,}" for n, odds in PUBLISHED])
def test_2_5_odds_ladder__step(world: World, fresh_round: Callable[[], int], cumulative: int, odds: int) -> None:
    before = max((odds for step, odds in PUBLISHED if step < cumulative), default=None)
    with world.sold(cumulative):
        shown = world.read("/api/public/odds")
        assert shown["currentOddsRange"] == shown["currentMilestone"]["oddsRange"] == odds
        assert shown["currentMilestone"]["cumulativeTickets"] == str(cumulative)
        assert world.read(f"/api/public/rounds/{fresh_round()}")["oddsRange"] == odds
    if before:
        with world.sold(cumulative - 1):
            assert world.read(f"/api/public/rounds/{fresh_round()}")["oddsRange"] == before


def test_2_5_the_ladder_has_these_steps_and_no_others(world: World) -> None:
    steps, cumulative = [PUBLISHED[0]], 0
    while True:
        with world.sold(cumulative):
            ahead = world.read("/api/public/odds")["nextMilestone"]
        if ahead is None:
            break
        cumulative = int(ahead["cumulativeTickets"])
        steps.append((cumulative, ahead["oddsRange"]))
    assert steps == PUBLISHED
