"""Tickets for tests of archives, any and many, and how COPY gives them."""

from __future__ import annotations

import random
import string
from collections.abc import Iterable

from hypothesis import strategies as st

from models.tickets import Ticket

IDENTIFIERS = st.text(string.ascii_letters + string.digits + "._:-", min_size=1, max_size=64)
_NUMBERS = st.integers(1, 2**31 - 1)
TICKETS = st.tuples(IDENTIFIERS, st.integers(1, 2**63 - 1), *[_NUMBERS] * 5, st.booleans())
"""Any ticket that the columns hold."""


def copied(tickets: Iterable[Ticket]) -> list[bytes]:
    """The tickets as COPY gives them."""
    return [
        "\t".join(map(str, (*ticket[2:7], "true" if ticket[7] else "false", ticket[1], ticket[0]))).encode() + b"\n"
        for ticket in tickets
    ]


def many_tickets(count: int, seed: int = 1) -> list[Ticket]:
    """So many tickets in the order of their ids, whose bonuses repeat."""
    pick = random.Random(seed)
    return [
        (f"t-{place:07d}", pick.randint(1, 10**7), *(pick.randint(1, 50) for _ in range(5)), place % 3 == 0)  # type: ignore[misc]
        for place in range(count)
    ]
