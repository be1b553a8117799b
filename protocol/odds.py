"""The odds ladder: the more tickets the protocol has ever sold, the longer the odds of the jackpot.

The rule: the ladder is fixed, and a round's odds range depends on nothing but the tickets of earlier settled
rounds.

Implements docs/protocol.md, section 2 (rules of a round).
"""

from __future__ import annotations

from dataclasses import dataclass

from protocol.errors import Invalid


@dataclass(frozen=True)
class Milestone:
    """From `cumulative_tickets` on, jackpot numbers are drawn from 1 to `odds_range`."""

    cumulative_tickets: int
    odds_range: int


LADDER: tuple[Milestone, ...] = (
    Milestone(0, 10_000_000),
    Milestone(100_000_000, 100_000_000),
    Milestone(1_000_000_000, 300_000_000),
    Milestone(10_000_000_000, 1_000_000_000),
    Milestone(100_000_000_000, 3_000_000_000),
)
"""Every step, lowest first (docs/protocol.md, section 2)."""


def current_milestone(cumulative: int) -> Milestone:
    """The highest step reached with `cumulative` tickets. Raises Invalid below zero."""
    if cumulative < 0:
        raise Invalid("cumulative tickets are never negative")
    return [step for step in LADDER if step.cumulative_tickets <= cumulative][-1]


def next_milestone(cumulative: int) -> Milestone | None:
    """The step that comes after `current_milestone`, or None on the highest. Raises Invalid below zero."""
    position = LADDER.index(current_milestone(cumulative))
    return LADDER[position + 1] if position + 1 < len(LADDER) else None


def odds_range(cumulative: int) -> int:
    """The jackpot number's range with `cumulative` tickets sold before. Raises Invalid below zero."""
    return current_milestone(cumulative).odds_range


def odds_text(range_: int) -> str:
    """The odds for a person: `1 in 10,000,000`."""
    return f"1 in {range_:,}"
