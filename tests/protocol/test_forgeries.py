"""Whatever is changed in a bundle or in its tickets, anywhere, is found and named; what nobody can find is listed."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from protocol.checks import NotVerified
from protocol.proof import check_bundle
from tests.protocol.rounds import before_the_draw, make_failed_round, make_round

FIRST = make_round(tickets={"opB": 3, "opC": 2}, nonces=("opB",), salt=1)
REAL = make_round(
    2,
    tickets={"opA": 4, "opB": 3, "opD": 2},
    excluded={"opC": "missed_sealing", "opD": "missed_escrow"},
    nonces=("opA", "opB"),
    previous=FIRST,
    salt=5,
)
OTHER = make_round(2, tickets={"opA": 4, "opB": 3, "opD": 2}, excluded={"opD": "missed_escrow"}, salt=6)
Path = tuple[Any, ...]

STATED = {
    # Closing changes nothing that is hashed: the round hash of a CLOSED round is that of a SETTLED one.
    ("state",): {"SETTLED"},
}
"""What a bundle may say instead and still be verified: all that has to be taken as stated of a finished round."""


def found(bundle: Any, lines: dict[str, list[bytes]] | None = None, earlier: Any = FIRST.bundle) -> str | None:
    """The name and the difference; None if all of it is verified."""
    sealed = REAL.lines if lines is None else lines
    try:
        for _ in check_bundle(bundle, lambda name: iter(sealed[name]), lambda _: earlier):
            pass
    except NotVerified as difference:
        return difference.message
    return None


def places(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every place in a bundle, from the whole down to each value."""
    yield path, value
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from places(part, (*path, key))


def instead(path: Path, value: Any) -> Iterator[Any]:
    """What a forger could write there."""
    yield from (None, True, 0, -1, 1.5, "", "x", [], {}, [None], {"x": 1})
    if isinstance(value, str):
        yield from (value + "0", value[:-1], value[1:], value.upper(), value.swapcase(), f" {value}", f"{value}\n")
        if value:
            yield from (chr(ord(value[0]) ^ 1) + value[1:], value[:-1] + chr(ord(value[-1]) ^ 1))
        if value.isdigit():
            yield from (str(int(value) + 1), f"0{value}", f"-{value}", int(value))
    elif isinstance(value, int) and not isinstance(value, bool):
        yield from (value + 1, value - 1, -value, float(value), str(value), 2**63)
    elif isinstance(value, list):
        yield from (value[::-1], value[1:], value[:-1], value + value[-1:], value[:1] + value)
    elif isinstance(value, dict):
        yield value | {"more": 1}
        for key in value:
            yield {name: part for name, part in value.items() if name != key}
    if path == ("state",):
        yield from ("OPEN", "SEALING", "SEALED", "ESCROWED", "DRAWN", "SETTLED", "FAILED")
    other: Any = OTHER.bundle
    try:
        for key in path:
            other = other[key]
    except (LookupError, TypeError):
        return
    yield other  # of another round that is just as honest


def with_value(path: Path, value: Any, bundle: Any = REAL.bundle) -> Any:
    changed = copy.deepcopy(bundle)
    if not path:
        return value
    place: Any = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return changed


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON, of the same types."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


PLACES = [(path, value) for path, value in places(REAL.bundle) if path]


def test_the_real_one_is_verified_and_nothing_of_it_is_taken_as_stated() -> None:
    checks = check_bundle(REAL.bundle, lambda name: iter(REAL.lines[name]), lambda _: FIRST.bundle)
    assert [check.name for check in checks if not check.proved] == []
    assert len(PLACES) > 100


@pytest.mark.parametrize(("path", "value"), PLACES, ids=[".".join(map(str, path)) for path, _ in PLACES])
def test_every_field_of_a_bundle_is_checked(path: Path, value: Any) -> None:
    unnoticed = set()
    for forged in instead(path, value):
        if same(forged, value):
            continue
        told = found(with_value(path, forged))
        if told is None:
            unnoticed.add(forged)
        else:
            name, colon, difference = told.partition(": ")
            assert colon, told
            assert name, told
            assert difference, told
    assert unnoticed == STATED.get(path, set())


UNBOUND = {
    # Nothing is anchored yet: what the round opened with is to be kept until it is.
    "OPEN": {"roundId", "state", "seedCommit", "manifests"},
    # Who is left out is final once the effective set is hashed.
    "SEALED": {"exclusions", "exclusions.0.operatorId", "seed.nonces"},
    "ESCROWED": {"seed.nonces"},
    "DRAWN": set(),
    # Its hash covers the anchor, which there is none of here, and the reason.
    "FAILED": {"seedCommit", "manifests"},
}
"""For each state the fields that may say something else and still be verified so far."""


def so_far(state: str) -> dict[str, Any]:
    """What was published of the real one in an earlier state, or had it failed before it was sealed."""
    failed = make_failed_round(2, FIRST).bundle
    if state == "OPEN":
        return failed | {"state": "OPEN", "failureReason": None, "roundHash": None}
    if state == "DRAWN":
        return REAL.bundle | {"state": "DRAWN", "settlementHash": None, "roundHash": None}
    return failed if state == "FAILED" else before_the_draw(REAL, state).bundle


@pytest.mark.parametrize("state", UNBOUND)
def test_nothing_of_a_later_state_can_stand_in_a_bundle(state: str) -> None:
    """Else a drawn round could be called sealed, and would be verified so far without a look at its tickets."""
    bundle = so_far(state)
    assert found(bundle) is None
    assert "expected null" in str(found(REAL.bundle | {"state": state, "failureReason": bundle["failureReason"]}))
    for key, value in REAL.bundle.items():
        if bundle[key] is None and value is not None:
            assert found(bundle | {key: value}), key
    if state != "DRAWN":
        secret = bundle["seed"] | {"secret": REAL.bundle["seed"]["secret"]}
        assert str(found(bundle | {"seed": secret})).startswith("seed.secret: expected null")


@pytest.mark.parametrize("state", UNBOUND)
def test_before_its_end_a_round_is_checked_but_for_what_is_listed(state: str) -> None:
    bundle = so_far(state)
    unnoticed = {
        ".".join(map(str, path))
        for path, value in places(bundle)
        for forged in instead(path, value)
        if path and not same(forged, value) and found(with_value(path, forged, bundle)) is None
    }
    assert unnoticed == UNBOUND[state]


@pytest.mark.parametrize("whole", [None, 1, "x", [], {}, [REAL.bundle], FIRST.bundle])
def test_another_bundle_altogether_is_found(whole: Any) -> None:
    assert found(whole)


def test_a_bundle_of_an_equally_honest_round_does_not_fit_the_tickets() -> None:
    assert "opA" in str(found(OTHER.bundle, earlier=None) or found(OTHER.bundle))


def arrangements(lines: list[bytes]) -> Iterator[tuple[str, list[bytes]]]:
    """Everything that can be done to the lines of a file without touching a line."""
    for at in range(len(lines)):
        yield f"drop {at}", lines[:at] + lines[at + 1 :]
        for to in range(len(lines) + 1):
            yield f"double {at} to {to}", [*lines[:to], lines[at], *lines[to:]]
        for other in range(at):
            swapped = list(lines)
            swapped[at], swapped[other] = swapped[other], swapped[at]
            yield f"swap {at} and {other}", swapped
    yield "reverse", lines[::-1]
    yield "empty", []


@pytest.mark.parametrize("operator_id", ["opA", "opB"])
def test_tickets_dropped_doubled_swapped_or_turned_round_are_found_and_named(operator_id: str) -> None:
    for what, lines in arrangements(REAL.lines[operator_id]):
        told = found(REAL.bundle, REAL.lines | {operator_id: lines})
        assert told, what
        assert operator_id in told, (what, told)


@pytest.mark.parametrize("operator_id", ["opA", "opB"])
def test_any_flipped_bit_of_a_ticket_file_is_found_and_named(operator_id: str) -> None:
    content = b"\n".join(REAL.lines[operator_id])
    for bit in range(len(content) * 8):
        forged = bytearray(content)
        forged[bit // 8] ^= 1 << bit % 8
        told = found(REAL.bundle, REAL.lines | {operator_id: bytes(forged).split(b"\n")})
        assert told, bit
        assert operator_id in told, (bit, told)


@pytest.mark.parametrize("field", range(8))
def test_two_tickets_that_exchange_a_field_are_found(field: int) -> None:
    """Each line stays a ticket, and every sum over all of them what it was."""
    first, second = (json.loads(line) for line in REAL.lines["opA"][:2])
    names = sorted(set(first) - {"operatorId", "roundId"})
    name = names[field % len(names)]
    first[name], second[name] = second[name], first[name]
    lines = [json.dumps(ticket, sort_keys=True, separators=(",", ":")).encode() for ticket in (first, second)]
    if lines == REAL.lines["opA"][:2]:
        return  # They had the same.
    assert "opA" in str(found(REAL.bundle, REAL.lines | {"opA": [*lines, *REAL.lines["opA"][2:]]}))


def test_two_operators_that_exchange_their_tickets_are_found() -> None:
    assert "opA" in str(found(REAL.bundle, {"opA": REAL.lines["opB"], "opB": REAL.lines["opA"]}))
    renamed = [line.replace(b'"opB"', b'"opA"') for line in REAL.lines["opB"]]
    assert "opA" in str(found(REAL.bundle, REAL.lines | {"opA": renamed}))


def test_any_other_earlier_round_is_found() -> None:
    for path, value in places(FIRST.bundle):
        for forged in instead(path, value):
            if not path or same(forged, value) or (path == ("state",) and forged == "SETTLED"):
                continue
            changed = copy.deepcopy(FIRST.bundle)
            place: Any = changed
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = forged
            told = found(REAL.bundle, earlier=changed)
            assert told, (path, forged)
