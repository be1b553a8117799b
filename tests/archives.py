"""Tickets for tests of archives, and how COPY gives them."""

from __future__ import annotations

import random
from collections.abc import Iterable

from models.tickets import Ticket


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
