"""An operator's reputation, from 0 to 100.

The rule: a pure formula over counts anybody can follow; a good deed never lowers it, a bad one never raises
it.

Implements docs/protocol.md, section 9 (reputation).
"""

from __future__ import annotations

from protocol.errors import Invalid

ROUNDS_POINTS = 60
PAYOUTS_POINTS = 25
HEARTBEATS_POINTS = 15

# Imagined good deeds everyone starts with, so that a newcomer has 100 and a single slip does not ruin it.
_ROUNDS_CREDIT = 4
_PAYOUTS_CREDIT = 10
_HEARTBEATS_CREDIT = 10


def score(
    sealed: int,
    escrowed: int,
    excluded: int,
    payouts_on_time: int,
    payouts_late: int,
    heartbeats_missed: int,
    nonces_withheld: int = 0,
) -> int:
    """Reputation from 0 to 100 (docs/protocol.md, section 9).

    Counts over the operator's life: rounds `sealed`, `escrowed` and `excluded` from; prizes paid on time and
    late; heartbeats missed; rounds in which it committed to a nonce and did not reveal it. Raises Invalid for
    a negative count.
    """
    counts = (sealed, escrowed, excluded, payouts_on_time, payouts_late, heartbeats_missed, nonces_withheld)
    if min(counts) < 0:
        raise Invalid("counts are never negative")
    return (
        _part(ROUNDS_POINTS, escrowed + _ROUNDS_CREDIT, excluded + nonces_withheld)
        + _part(PAYOUTS_POINTS, payouts_on_time + _PAYOUTS_CREDIT, payouts_late)
        + _part(HEARTBEATS_POINTS, sealed + _HEARTBEATS_CREDIT, heartbeats_missed)
    )


def _part(points: int, good: int, bad: int) -> int:
    return points * good // (good + bad)
