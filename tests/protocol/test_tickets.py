"""One ticket, one line."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from protocol import merkle
from protocol.errors import Invalid
from protocol.tickets import Ticket, read_tickets, ticket_line, tickets_root

RANGES = (10_000_000, 1_000_000, 100_000, 10_000, 1_000, 100)
IDENTIFIERS = st.text("ABCXYZabcxyz0189._:-", min_size=1, max_size=64)
NUMBERS = st.integers(1, 3_000_000_000)

LINE = (
    b'{"bonus1":1,"bonus2":2,"bonus3":3,"bonus4":4,"bonus5":5,"isQuickPick":true,"jackpotNumber":1234567,'
    b'"operatorId":"opA","roundId":7,"ticketId":"t-1"}'
)


def _line(ticket_id: str = "t-1", **changes: Any) -> bytes:
    ticket = json.loads(LINE) | {"ticketId": ticket_id} | changes
    return rfc8785.dumps(ticket)


def _read(*lines: bytes) -> list[tuple[bytes, bytes, tuple[int, ...]]]:
    return list(read_tickets(7, "opA", RANGES, lines))


def test_the_published_vector() -> None:
    line = ticket_line(7, "opA", "t-1", 1234567, 1, 2, 3, 4, 5, True)
    assert line == LINE == Ticket("t-1", (1234567, 1, 2, 3, 4, 5), True).line(7, "opA")
    assert merkle.leaf_hash(line).hex() == "a42fa83ab67bdde15db2d45911c0a9f1e53dcc59386defbe010f45fcbf32f3cb"
    assert tickets_root([line]) == merkle.leaf_hash(line).hex()


@given(st.integers(1, 2**53 - 1), IDENTIFIERS, IDENTIFIERS, st.tuples(*[NUMBERS] * 6), st.booleans())
def test_the_line_made_from_a_template_is_rfc_8785_canonical_json(
    round_id: int, operator_id: str, ticket_id: str, numbers: tuple[int, ...], quick: bool
) -> None:
    jackpot, *bonuses = numbers
    ticket = {f"bonus{tier}": number for tier, number in enumerate(bonuses, start=1)} | {
        "jackpotNumber": jackpot,
        "isQuickPick": quick,
        "operatorId": operator_id,
        "roundId": round_id,
        "ticketId": ticket_id,
    }
    line = ticket_line(round_id, operator_id, ticket_id, *numbers, quick)  # type: ignore[call-arg,arg-type]
    assert line == rfc8785.dumps(ticket)


def test_the_root_is_over_the_lines_without_their_line_ends() -> None:
    lines = [_line(f"t-{number}") for number in range(5)]
    expected = merkle.root(merkle.leaf_hash(line) for line in lines).hex()
    assert tickets_root(lines) == expected
    assert tickets_root(line + b"\n" for line in lines) == expected
    assert tickets_root([]) == merkle.EMPTY_ROOT.hex()


def test_lines_are_read_back_with_numbers_in_tier_order() -> None:
    assert _read(LINE, _line("t-2", isQuickPick=False)) == [
        (LINE, b"t-1", (1234567, 1, 2, 3, 4, 5)),
        (_line("t-2", isQuickPick=False), b"t-2", (1234567, 1, 2, 3, 4, 5)),
    ]


def test_ticket_ids_ascend_by_bytes() -> None:
    in_order = ["-", ".", "0", "10", "9", ":", "A", "Z", "_", "a"]
    assert [row[1].decode() for row in _read(*map(_line, in_order))] == in_order
    with pytest.raises(Invalid, match=r"line 2: ticket 10 is out of order"):
        _read(_line("9"), _line("10"))
    with pytest.raises(Invalid, match=r"line 3: ticket b stands twice"):
        _read(_line("a"), _line("b"), _line("b", bonus1=2))


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"roundId": 8}, "roundId is 8, expected 7"),
        ({"roundId": "7"}, "roundId"),
        ({"operatorId": "opB"}, "operatorId is 'opB', expected 'opA'"),
        ({"jackpotNumber": 10_000_001}, "jackpot is 10000001, its range ends at 10000000"),
        ({"bonus5": 101}, "bonus5 is 101, its range ends at 100"),
        ({"bonus1": 0}, "bonus1 is 0"),
        ({"bonus2": -1}, "bonus2 is -1"),
        ({"bonus3": True}, "bonus3 is True"),
        ({"bonus4": "4"}, "bonus4 is '4'"),
        ({"bonus4": 10**15}, "bonus4 is 1000000000000000"),
        ({"isQuickPick": 1}, "isQuickPick"),
        ({"ticketId": "t 1"}, "ticketId"),
        ({"ticketId": ""}, "ticketId"),
        ({"ticketId": "x" * 65}, "ticketId"),
        ({"extra": 1}, "exactly the keys"),
    ],
)
def test_a_line_that_is_wrong_is_named_with_what_is_wrong(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(Invalid) as problem:
        _read(_line("s"), _line(**changes))
    assert problem.value.message.startswith("line 2: ")
    assert complaint in problem.value.message


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff",
        LINE + b" ",
        LINE + b"\r",
        LINE + b"\n",
        LINE.replace(b":1,", b":1.0,"),
        LINE.replace(b":1,", b":01,"),
        LINE.replace(b":1,", b":1e0,"),
        LINE.replace(b'"t-1"', b'"\\u0074-1"'),
        LINE.replace(b'"roundId":7,', b'"roundId":7,"roundId":7,'),
        LINE.replace(b'{"bonus1":1,', b"{").replace(b"}", b',"bonus1":1}'),
        LINE[:-1],
        LINE[:60],
    ],
)
def test_a_line_that_is_not_canonical_is_refused(line: bytes) -> None:
    with pytest.raises(Invalid, match="line 1"):
        _read(line)


def test_every_change_of_one_byte_is_refused_or_changes_the_root() -> None:
    dice = random.Random(7)
    for position in range(len(LINE)):
        changed = LINE[:position] + bytes([dice.choice(range(32, 127))]) + LINE[position + 1 :]
        if changed == LINE:
            continue
        try:
            _read(changed)
        except Invalid:
            continue
        assert tickets_root([changed]) != tickets_root([LINE])


def test_an_operator_id_with_signs_special_to_patterns_stands_for_itself() -> None:
    line = ticket_line(7, "a.b", "t", 1, 1, 1, 1, 1, 1, False)
    assert list(read_tickets(7, "a.b", RANGES, [line]))
    with pytest.raises(Invalid):
        list(read_tickets(7, "a.b", RANGES, [line.replace(b"a.b", b"axb")]))
