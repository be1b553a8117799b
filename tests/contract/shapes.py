"""What a JSON value of the published interface may look like, said so that a test's name can be read.

One rule: a kind is exact. A number is no boolean, a large amount is a string of digits, a timestamp is UTC with `Z`,
and an object has its published fields, all of them and no others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest

_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


@dataclass(frozen=True)
class Kind:
    """A kind of value. `name` goes on from a field's name: "totalDeposited is a string of micro-USDC". `faults` are
    what keeps a value from being one, a sentence each.
    """

    name: str
    faults: Callable[[Any], list[str]]

    def __or__(self, other: Kind) -> Kind:
        name = f"{self.name} or {other.name}"
        return Kind(name, lambda value: self.faults(value) and other.faults(value) and [f"{value!r} is not {name}"])

    def __str__(self) -> str:
        return f"is {self.name}"


Fields = dict[str, Kind]


def _kind(name: str, fits: Callable[[Any], bool]) -> Kind:
    return Kind(name, lambda value: [] if fits(value) else [f"{value!r} is not {name}"])


def _text(name: str, pattern: str) -> Kind:
    whole = re.compile(pattern)
    return _kind(name, lambda value: isinstance(value, str) and whole.fullmatch(value) is not None)


def _is_timestamp(value: Any) -> bool:
    return isinstance(value, str) and _TIMESTAMP.fullmatch(value) is not None and bool(datetime.fromisoformat(value))


NUMBER = _kind("a number", lambda value: isinstance(value, int | float) and not isinstance(value, bool))
STRING = _kind("a string", lambda value: isinstance(value, str) and value != "")
BOOLEAN = _kind("a boolean", lambda value: isinstance(value, bool))
NULL = _kind("null", lambda value: value is None)
TIMESTAMP = _kind("a timestamp in UTC with Z", _is_timestamp)
MICRO = _text("a string of micro-USDC", r"0|[1-9]\d*")
COUNT_TEXT = _text("a string of digits", r"0|[1-9]\d*")
DOLLARS = _text("a string of USD with 2 decimals", r"\d+\.\d\d")
ODDS = _text("a string of the form 1 in N", r"1 in [1-9]\d{0,2}(,\d{3})*")
HASH = _text("a string of 64 hex digits", r"[0-9a-f]{64}")
ADDRESS = _text("a string of 0x and 40 hex digits", r"0x[0-9a-fA-F]{40}")
URL = _text("a string that is a URL", r"https?://[^/\s]+(/\S*)?")


def exactly(value: Any) -> Kind:
    """This value and no other; true is not 1."""
    return _kind(repr(value), lambda found: found == value and type(found) is type(value))


def list_of(kind: Kind) -> Kind:
    """An array, empty or not, of values of one kind."""

    def faults(value: Any) -> list[str]:
        if not isinstance(value, list):
            return [f"{value!r} is not an array"]
        return [f"[{place}] {fault}" for place, item in enumerate(value) for fault in kind.faults(item)]

    return Kind(f"an array, each {kind.name}", faults)


def object_of(fields: Fields) -> Kind:
    """An object with these fields, all of them and no others, each of its kind."""

    def faults(value: Any) -> list[str]:
        if not isinstance(value, dict):
            return [f"{value!r} is not an object"]
        found = [f"{name} is missing" for name in fields if name not in value]
        found += [f"{name} is not published" for name in value if name not in fields]
        known = [name for name in fields if name in value]
        return found + [f"{name}: {fault}" for name in known for fault in fields[name].faults(value[name])]

    return Kind("an object", faults)


STRINGS = list_of(STRING)


def assert_is(value: Any, kind: Kind) -> None:
    """The value is of the kind; if not, everything that is wrong with it is said."""
    found = kind.faults(value)
    assert not found, "\n".join(found)


def assert_fields(shown: Any, fields: Fields) -> None:
    """An object with these fields, all of them and no others, each of its kind."""
    assert_is(shown, object_of(fields))


def each_field(*tables: Fields) -> pytest.MarkDecorator:
    """One test for every row of the tables, as `field` and `kind`, named after it."""
    table = [(field, kind) for fields in tables for field, kind in fields.items()]
    return pytest.mark.parametrize(("field", "kind"), table, ids=[f"{field} {kind}" for field, kind in table])


def each(argument: str, rows: Iterable[Any]) -> pytest.MarkDecorator:
    """One test for every row, named after it."""
    table = list(rows)
    return pytest.mark.parametrize(argument, table, ids=[str(row) for row in table])
