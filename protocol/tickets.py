"""A ticket as a line of bytes: written, read back strictly, and gathered under one root per operator and
round.

The rule: one ticket has one line. The line is the ticket's canonical JSON and the preimage of its Merkle
leaf; lines stand in ascending order of ticket id by bytes, each id once.

Implements docs/protocol.md, section 5 (tickets).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256

from protocol import merkle
from protocol.canonical import parse_strict_json
from protocol.errors import Invalid
from protocol.identifiers import IDENTIFIER_PATTERN, is_identifier
from protocol.numbers import LABELS
from protocol.rules import Six

FIELDS = (*LABELS[1:], "isQuickPick", "jackpotNumber", "operatorId", "roundId", "ticketId")
"""The keys of a ticket line, in the order they stand in it."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """A ticket: its id, its six numbers in tier order (jackpot, bonus1 to bonus5), and whether a computer
    chose them.
    """

    ticket_id: str
    numbers: Six
    is_quick_pick: bool

    def line(self, round_id: int, operator_id: str) -> bytes:
        """This ticket's line (see `ticket_line`)."""
        return ticket_line(round_id, operator_id, self.ticket_id, *self.numbers, self.is_quick_pick)


def ticket_line(
    round_id: int,
    operator_id: str,
    ticket_id: str,
    jackpot_number: int,
    bonus1: int,
    bonus2: int,
    bonus3: int,
    bonus4: int,
    bonus5: int,
    is_quick_pick: bool,
) -> bytes:
    """The ticket's canonical JSON, without a line end (docs/protocol.md, section 5).

    The ids must be identifiers and the numbers positive; that is for the caller to have checked, since this
    runs once per ticket. Identifiers need no escaping, so a template gives the same bytes as RFC 8785 at a
    tenth of its price.
    """
    quick = "true" if is_quick_pick else "false"
    return (
        f'{{"bonus1":{bonus1},"bonus2":{bonus2},"bonus3":{bonus3},"bonus4":{bonus4},"bonus5":{bonus5},'
        f'"isQuickPick":{quick},"jackpotNumber":{jackpot_number},"operatorId":"{operator_id}",'
        f'"roundId":{round_id},"ticketId":"{ticket_id}"}}'
    ).encode("ascii")


def tickets_root(lines: Iterable[bytes]) -> str:
    """`ticketsRoot`, 64 hex digits, over ticket lines in ascending order of ticket id (docs/protocol.md,
    section 5).

    Streams; a line end at the end of a line is not part of it. Order and content are the caller's to have
    checked: `read_tickets` does.
    """
    return merkle.root(sha256(b"\x00" + (line[:-1] if line.endswith(b"\n") else line)).digest() for line in lines).hex()


def read_tickets(
    round_id: int, operator_id: str, ranges: Six, lines: Iterable[bytes]
) -> Iterator[tuple[bytes, bytes, Six]]:
    """Reads an operator's sealed tickets strictly, yielding (line, ticket id, six numbers in tier order).

    Lines come without line ends. Raises Invalid, naming the line by its number from 1, for a line that is not
    the canonical JSON of a ticket of this round and operator, a number outside 1 to its range, or an id that
    does not come after the one before.
    """
    match = _line_pattern(round_id, operator_id).fullmatch
    max_jackpot, max1, max2, max3, max4, max5 = ranges
    previous = b""
    for position, line in enumerate(lines, start=1):
        found = match(line)
        if found is None:
            raise Invalid(f"line {position}: {_what_is_wrong(round_id, operator_id, line)}")
        b1, b2, b3, b4, b5, jackpot, ticket_id = found.groups()
        numbers = (int(jackpot), int(b1), int(b2), int(b3), int(b4), int(b5))
        n0, n1, n2, n3, n4, n5 = numbers
        if n0 > max_jackpot or n1 > max1 or n2 > max2 or n3 > max3 or n4 > max4 or n5 > max5:
            label, number, highest = next(row for row in zip(LABELS, numbers, ranges, strict=True) if row[1] > row[2])
            raise Invalid(f"line {position}: {label} is {number}, its range ends at {highest}")
        if ticket_id <= previous:
            fault = "stands twice" if ticket_id == previous else "is out of order"
            raise Invalid(f"line {position}: ticket {ticket_id.decode()} {fault}")
        previous = ticket_id
        yield line, ticket_id, numbers


def line_ticket_id(round_id: int, operator_id: str, line: bytes) -> str:
    """The ticket id of one line of this round and operator. Raises Invalid for anything that is not the canonical JSON
    of such a ticket.
    """
    found = _line_pattern(round_id, operator_id).fullmatch(line)
    if found is None:
        raise Invalid(_what_is_wrong(round_id, operator_id, line))
    return found.groups()[-1].decode("ascii")


def _line_pattern(round_id: int, operator_id: str) -> re.Pattern[bytes]:
    number = "([1-9][0-9]{0,18})"
    bonuses = ",".join(f'"bonus{tier}":{number}' for tier in range(1, 6))
    return re.compile(
        (
            rf'\{{{bonuses},"isQuickPick":(?:true|false),"jackpotNumber":{number},'
            rf'"operatorId":"{re.escape(operator_id)}","roundId":{round_id},"ticketId":"({IDENTIFIER_PATTERN})"\}}'
        ).encode("ascii")
    )


def _what_is_wrong(round_id: int, operator_id: str, line: bytes) -> str:
    """Says why a line is not a ticket line; only ever called for one that is not."""
    try:
        ticket = parse_strict_json(line)
    except Invalid as problem:
        return problem.message
    if not isinstance(ticket, dict) or set(ticket) != set(FIELDS):
        return f"not an object with exactly the keys {', '.join(FIELDS)}"
    if ticket["roundId"] != round_id:
        return f"roundId is {ticket['roundId']!r}, expected {round_id}"
    if ticket["operatorId"] != operator_id:
        return f"operatorId is {ticket['operatorId']!r}, expected {operator_id!r}"
    if not is_identifier(ticket["ticketId"]):
        return "ticketId is not an identifier"
    if not isinstance(ticket["isQuickPick"], bool):
        return "isQuickPick is neither true nor false"
    for key in (*LABELS[1:], "jackpotNumber"):
        if not isinstance(ticket[key], int) or isinstance(ticket[key], bool) or ticket[key] < 1:
            return f"{key} is {ticket[key]!r}, not a whole number from 1"
    return "not canonical JSON (order of keys, white space, or the way a number is written)"
