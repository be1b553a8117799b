"""Cutting what is long into requests that the coordinator takes.

The one rule kept here: the same tickets in the same order make the same batches, byte for byte, so that what is
sent again is what was sent.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple, TypeVar

from protocol.tickets import Ticket

MOST_TICKETS = 50_000
MOST_BYTES = 16 * 1024 * 1024
"""What a batch may inflate to."""
MOST_PAYOUTS = 10_000

_T = TypeVar("_T")


class Batch(NamedTuple):
    """A request's body, gzip-compressed, and how many tickets are in it."""

    tickets: int
    body: bytes


def ticket_batches(
    round_id: int, tickets: Iterable[Ticket], most_tickets: int = MOST_TICKETS, most_bytes: int = MOST_BYTES
) -> Iterator[Batch]:
    """The tickets as batches, each as large as may be. Reads no further ahead than one batch."""
    head, tail = b'{"roundId":%d,"tickets":[' % round_id, b"]}"
    room = most_bytes - len(head) - len(tail)
    held: list[bytes] = []
    size = 0
    for ticket in tickets:
        written = _json(ticket)
        if held and (len(held) == most_tickets or size + len(written) > room):
            yield _packed(head, held, tail)
            held, size = [], 0
        held.append(written)
        size += len(written) + 1  # the comma after it
    if held:
        yield _packed(head, held, tail)


def slices(things: Iterable[_T], most: int) -> Iterator[list[_T]]:
    """The things in order, so many at a time."""
    rest = iter(things)
    return iter(lambda: list(islice(rest, most)), [])


def _packed(head: bytes, held: list[bytes], tail: bytes) -> Batch:
    # The fastest level: what goes over the wire is a quarter, and the next two levels win a tenth of that.
    # And no time in it, which gzip would otherwise write.
    return Batch(len(held), gzip.compress(head + b",".join(held) + tail, 1, mtime=0))


def _json(ticket: Ticket) -> bytes:
    jackpot, bonus1, bonus2, bonus3, bonus4, bonus5 = ticket.numbers
    return (
        f'{{"ticketId":{json.dumps(ticket.ticket_id)},"jackpotNumber":{jackpot:d},"bonus1":{bonus1:d},'
        f'"bonus2":{bonus2:d},"bonus3":{bonus3:d},"bonus4":{bonus4:d},"bonus5":{bonus5:d},'
        f'"isQuickPick":{"true" if ticket.is_quick_pick else "false"}}}'
    ).encode("ascii")
