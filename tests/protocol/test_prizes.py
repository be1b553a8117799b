"""The five fixed sub-prizes."""

from __future__ import annotations

from protocol.prizes import JACKPOT, TIERS


def test_the_tiers_are_the_published_ones() -> None:
    assert [(tier.number, tier.label, tier.prize, tier.range) for tier in TIERS] == [
        (1, "bonus1", 25_000 * 10**6, 1_000_000),
        (2, "bonus2", 1_000 * 10**6, 100_000),
        (3, "bonus3", 100 * 10**6, 10_000),
        (4, "bonus4", 10 * 10**6, 1_000),
        (5, "bonus5", 5 * 10**6, 100),
    ]
    assert JACKPOT == "jackpot"
