"""The five fixed sub-prizes, and what the six winning numbers are called.

The rule: these are the defaults a round copies into its rules when it opens; a drawn round is judged by its
own rules, never by this table.

Implements docs/protocol.md, section 2 (rules of a round).
"""

from __future__ import annotations

from dataclasses import dataclass

JACKPOT = "jackpot"
"""Label of tier 0. Its range is the round's odds range."""


@dataclass(frozen=True)
class Tier:
    """A sub-prize: tickets whose number of this `label` equals the drawn one of 1 to `range` win `prize`
    micro-USDC.
    """

    number: int
    label: str
    prize: int
    range: int


TIERS: tuple[Tier, ...] = (
    Tier(1, "bonus1", 25_000_000_000, 1_000_000),
    Tier(2, "bonus2", 1_000_000_000, 100_000),
    Tier(3, "bonus3", 100_000_000, 10_000),
    Tier(4, "bonus4", 10_000_000, 1_000),
    Tier(5, "bonus5", 5_000_000, 100),
)
"""Tier 1 to tier 5 (docs/protocol.md, section 2)."""
