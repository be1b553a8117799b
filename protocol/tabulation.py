"""Counts an operator's sealed tickets against the drawn numbers, from the published lines alone.

The rule: one pass, nothing kept but the winners. Whoever holds the lines gets the count, the root and the
wins that the coordinator must have got, however it got them.

Implements docs/protocol.md, section 5 (tickets) and section 7 (settlement).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256

from protocol import merkle
from protocol.errors import Invalid
from protocol.numbers import Numbers, tiers_won
from protocol.rules import Six
from protocol.tickets import read_tickets
from protocol.winners import TIER_COUNT


@dataclass(frozen=True)
class Tabulation:
    """One operator's tickets: how many, their root (64 hex digits), and per tier 0 to 5 the ids of the
    winning ones, in order.
    """

    ticket_count: int
    tickets_root: str
    wins: tuple[tuple[str, ...], ...]


def tabulate(
    round_id: int, operator_id: str, ranges: Six, numbers: Numbers, lines: Iterable[bytes], at_most: int
) -> Tabulation:
    """Reads ticket lines (without line ends, in order) and tabulates them; streams, keeping only winners.

    Raises Invalid for the first line that is not as it should be (see `read_tickets`) and for more than
    `at_most` lines.
    """
    wins: list[list[str]] = [[] for _ in range(TIER_COUNT)]
    count = 0
    drawn0, drawn1, drawn2, drawn3, drawn4, drawn5 = numbers

    def leaves() -> Iterator[bytes]:
        nonlocal count
        for line, ticket_id, own in read_tickets(round_id, operator_id, ranges, lines):
            count += 1
            if count > at_most:
                raise Invalid(f"expected {at_most} tickets, found more")
            n0, n1, n2, n3, n4, n5 = own
            # Spelled out, since this runs once per ticket and hardly any ticket wins.
            if n0 == drawn0 or n1 == drawn1 or n2 == drawn2 or n3 == drawn3 or n4 == drawn4 or n5 == drawn5:
                for tier in tiers_won(own, numbers):
                    wins[tier].append(ticket_id.decode("ascii"))
            yield sha256(b"\x00" + line).digest()

    root = merkle.root(leaves()).hex()
    return Tabulation(count, root, tuple(tuple(won) for won in wins))
