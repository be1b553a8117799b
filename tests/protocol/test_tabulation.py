"""Counting sealed tickets against the drawn numbers."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from protocol.errors import Invalid
from protocol.numbers import Numbers
from protocol.tabulation import tabulate
from protocol.tickets import Ticket, tickets_root
from tests.protocol.rounds import SMALL, make_tickets

DRAWN = Numbers(1, 2, 3, 4, 5, 6)


def _lines(*tickets: Ticket) -> list[bytes]:
    return [ticket.line(7, "opA") for ticket in tickets]


def test_winning_tickets_are_listed_by_tier_in_order_of_their_ids() -> None:
    lines = _lines(
        Ticket("a", (1, 9, 9, 9, 9, 6), True),
        Ticket("b", (9, 9, 9, 9, 9, 9), True),
        Ticket("c", (1, 2, 3, 4, 5, 6), False),
        Ticket("d", (6, 1, 2, 3, 4, 5), False),
    )
    result = tabulate(7, "opA", SMALL.number_ranges, DRAWN, lines, at_most=4)
    assert result.ticket_count == 4
    assert result.tickets_root == tickets_root(lines)
    assert result.wins == (("a", "c"), ("c",), ("c",), ("c",), ("c",), ("a", "c"))


def test_it_agrees_with_a_plain_count_over_random_tickets() -> None:
    tickets = make_tickets(random.Random(5), SMALL, 3_000)
    result = tabulate(7, "opA", SMALL.number_ranges, DRAWN, _lines(*tickets), at_most=3_000)
    for tier in range(6):
        assert result.wins[tier] == tuple(row.ticket_id for row in tickets if row.numbers[tier] == DRAWN[tier])
        assert result.wins[tier], "the ranges are small enough for winners in every tier"


def test_no_tickets_are_a_result_too() -> None:
    result = tabulate(7, "opA", SMALL.number_ranges, DRAWN, [], at_most=0)
    assert (result.ticket_count, result.tickets_root, result.wins) == (0, tickets_root([]), ((),) * 6)


def test_it_stops_reading_at_one_ticket_too_many() -> None:
    read = 0

    def endless() -> Iterator[bytes]:
        nonlocal read
        while True:
            read += 1
            yield Ticket(f"t-{read:09}", (1, 1, 1, 1, 1, 1), False).line(7, "opA")

    with pytest.raises(Invalid, match="expected 10 tickets, found more"):
        tabulate(7, "opA", SMALL.number_ranges, DRAWN, endless(), at_most=10)
    assert read == 11
