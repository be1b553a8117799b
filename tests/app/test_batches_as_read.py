"""Two readers of one ticket batch: the fast one takes exactly what the documented schema takes, and as the same.

One rule: batches are made as text, from a right one by changes, so that what JSON can say twice, or in other words, or
wrongly, is among them.
"""

from __future__ import annotations

import json
import string
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from marshmallow import ValidationError

from protocol.errors import Invalid, LotteryError

Pair = tuple[str, str]
"""Name and value of a member, as JSON text."""
HIGHEST = {
    "jackpotNumber": 3_000_000_000,
    "bonus1": 1_000_000,
    "bonus2": 100_000,
    "bonus3": 10_000,
    "bonus4": 1_000,
    "bonus5": 100,
}
NAMES = ["ticketId", *HIGHEST, "isQuickPick", "roundId", "tickets", "color", "bonus6", "ticketid", "", "\0", "é"]
LONG = {
    "(deep)": "[" * 40 + "]" * 40,
    "(too deep)": "[" * 70 + "]" * 70,
    "(bottomless)": "[" * 5_000 + "]" * 5_000,
    "(large)": "9" * 400,
    "(larger)": "9" * 5_000,
    "(long)": json.dumps("a" * 64),
    "(too long)": json.dumps("a" * 65),
}
"""What would fill the page if an example of it were printed."""
IDS = ["", "a", "a b", "a\n", "a\nb", "a,b", "a\tb", 'a"b', "\\.", "\\N", "é", "\0", "٣", "[]", "a:b.c_d-E9"]
LITERALS = [
    *("0", "1", "-1", "-0", "1.0", "1.5", "1e0", "1e3", "1E+2", "100e-2", "1e400", "-1e400", "0.1e1", "1e-400"),
    *("01", "+1", ".5", "1.", "0x1", "1_0", "NaN", "Infinity", "-Infinity", "True", "nul", "'a'", "", "undefined"),
    *("true", "false", "null", "[]", "{}", "[1]", '{"a":1}', '"1"', '"true"', '"\\u0041"', '"\\ud800"', '"\\u000a"'),
    *('"\\ud83d\\ude00"', '"\\q"', '"a', '"\x01"', *LONG),
    *(str(edge + step) for edge in (*HIGHEST.values(), 2**31, 2**32, 2**53, 2**63, 2**64) for step in (-1, 0, 1)),
    *(json.dumps(name) for name in IDS),
    *(json.dumps(name, ensure_ascii=False) for name in IDS),
]  # fmt: skip
SPACES = st.sampled_from(["", "", "", " ", "\n\t\r ", "\f", "\ufeff", "//\n", "\0"])


class Change(NamedTuple):
    """Where, what kind of, and with what."""

    ticket: int
    place: int
    kind: str
    name: str
    value: str


WRITTEN = st.sampled_from(LITERALS).map(lambda text: LONG.get(text, text))
LITERAL = st.one_of(
    WRITTEN,
    st.integers().map(str),
    st.integers(-2, 101).map(str),
    st.floats().map(repr),
    st.text(max_size=5).map(json.dumps),
    st.text(string.ascii_letters + string.digits + "._:-", max_size=66).map(json.dumps),
)
NAME = st.one_of(
    st.sampled_from(NAMES).map(json.dumps),
    # The same name in other words.
    st.sampled_from(NAMES[:10]).map(lambda name: '"' + "".join(f"\\u{ord(char):04x}" for char in name) + '"'),
    WRITTEN,
)
KINDS = st.sampled_from(["value", "value", "value", "drop", "add", "again", "rename", "swap", "ticket"])
CHANGES = st.builds(Change, st.integers(-1, 3), st.integers(0, 8), KINDS, NAME, LITERAL)


def a_ticket(place: int) -> list[Pair]:
    numbers = [(json.dumps(name), str(place + 1)) for name in HIGHEST]
    return [('"ticketId"', f'"t-{place}"'), *numbers, ('"isQuickPick"', "true")]


def changed(members: list[Pair], change: Change) -> list[Pair]:
    at = change.place % len(members) if members else 0
    before, here, after = members[:at], members[at : at + 1], members[at + 1 :]
    match change.kind:
        case "drop":
            return before + after
        case "add":
            return [*before, (change.name, change.value), *here, *after]
        case "again":
            return [*before, *here, *here, *after]
        case "rename":
            return [*before, *((change.name, value) for _, value in here), *after]
        case "swap":
            return [*after, *here, *before]
        case _:
            return [*before, *((name, change.value) for name, _ in here), *after]


def text_of(members: list[Pair], space: str = "") -> str:
    return "{" + ",".join(f"{space}{name}{space}:{space}{value}" for name, value in members) + space + "}"


@st.composite
def batches(draw: st.DrawFn) -> bytes:
    """A right batch of up to 4 tickets with up to 3 changes, some of them to its bytes."""
    count = draw(st.integers(1, 4))
    tickets: list[list[Pair] | str] = [a_ticket(place) for place in range(count)]
    frame: list[Pair] = [('"roundId"', "7"), ('"tickets"', "")]
    space = draw(SPACES)
    changes = draw(st.lists(CHANGES, max_size=3))
    for change in changes:
        if change.ticket >= 0:
            at = change.ticket % count
            one = tickets[at]
            if change.kind == "ticket" or isinstance(one, str):
                tickets[at] = change.value
            else:
                tickets[at] = changed(one, change)
    written = ",".join(one if isinstance(one, str) else text_of(one, space) for one in tickets)
    frame[1] = (frame[1][0], f"[{space}{written}{space}]")
    for change in changes:
        if change.ticket < 0:
            frame = changed(frame, change)
    body = (space + text_of(frame, space) + space).encode("utf-8", "surrogatepass")
    for _ in range(draw(st.integers(0, 1)) and draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(body)))
        body = body[:at] + draw(st.binary(max_size=2)) + body[at + draw(st.integers(0, 3)) :]
    return body


def documented(body: bytes) -> tuple[int, list[tuple[Any, ...]]] | dict[Any, Any] | None:
    """What the schema makes of it: the batch, its messages, or None for what is no strict JSON."""
    from app.parsing import json_body
    from app.resources.ticket_shapes import TicketBatchSchema

    try:
        loaded = TicketBatchSchema().load(json_body(body))
    except ValidationError as error:
        return dict(error.normalized_messages())
    except LotteryError:
        return None
    return loaded["roundId"], [tuple(ticket.values()) for ticket in loaded["tickets"]]


@settings(max_examples=300)
@given(body=batches())
def test_the_fast_path_takes_exactly_what_the_documented_schema_takes(body: bytes) -> None:
    from app.resources.ticket_shapes import TicketSchema, decoded

    expected = documented(body)
    found = decoded(body)
    if isinstance(expected, tuple):
        assert found == expected
        # Equal is not enough where 1 == True == 1.0.
        types = [str, *[int] * 6, bool]
        assert found is not None
        assert type(found[0]) is int
        assert all([type(value) for value in ticket] == types for ticket in found[1])
        assert len(TicketSchema().fields) == len(types)
    else:
        assert found is None


@settings(max_examples=200)
@given(body=batches())
def test_what_the_fast_path_refuses_is_explained_as_the_schema_would(body: bytes) -> None:
    from app.errors import BadRequest
    from app.resources.ticket_faults import explain
    from app.resources.ticket_shapes import decoded

    if decoded(body) is not None:
        return
    expected = documented(body)
    with pytest.raises((Invalid, BadRequest)) as refused:
        explain(body)
    if expected is None:
        return  # What can mean two things may be refused for a fault before that.
    assert isinstance(expected, dict)
    assert isinstance(refused.value, Invalid)
    of_tickets = expected.get("tickets")
    if set(expected) == {"tickets"} and isinstance(of_tickets, dict):
        faults = refused.value.details["faults"]
        assert [(fault["index"], fault["field"]) for fault in faults] == [
            (index, None if field == "_schema" else field)
            for index, about in sorted(of_tickets.items())
            for field in (about if isinstance(about, dict) else ["_schema"])
        ]
    else:
        assert set(refused.value.details) == (set(expected) - ({"tickets"} if isinstance(of_tickets, dict) else set()))


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"{}", b'"a"', b"7", b"[[]]", b"{" * 100_000, b"[" * 100_000])
def test_what_is_no_batch_at_all_is_refused_by_both(body: bytes) -> None:
    from app.resources.ticket_faults import explain
    from app.resources.ticket_shapes import decoded

    assert decoded(body) is None
    assert not isinstance(documented(body), tuple)
    with pytest.raises(LotteryError):
        explain(body)


def test_a_key_given_twice_is_no_json_of_ours_wherever_it_stands() -> None:
    from app.errors import BadRequest
    from app.resources.ticket_faults import explain

    first, *others = a_ticket(0)
    one = text_of([first, *others])
    for twice in (
        f'{{"roundId":1,"roundId":1,"tickets":[{one}]}}',
        f'{{"roundId":1,"tickets":[{one}],"tickets":[{one}]}}',
        f'{{"roundId":1,"tickets":[{one},{text_of([first, first, *others])}]}}',
    ):
        with pytest.raises(BadRequest, match="twice"):
            explain(twice.encode())
