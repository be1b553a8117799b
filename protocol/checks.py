"""What a check is: a name that held, or the first difference, with what was expected and what was found.

The rule: whatever fails is named as the bundle names it, so that a reader finds the place.

Implements docs/protocol.md, section 10 (proof bundle).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from protocol.errors import Invalid

_T = TypeVar("_T")


class NotVerified(Invalid):
    """The first thing that differs: its `name`, and in the message what was expected and what was found."""

    code = "not_verified"

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: {problem}" if name else problem)
        self.name = name


@dataclass(frozen=True)
class Check:
    """A check that held; `proved` is False for what had to be taken as stated."""

    name: str
    proved: bool = True


def same(name: str, expected: object, found: object) -> None:
    """Raises NotVerified unless the stated value `found` equals the computed `expected`, in type as well."""
    if type(expected) is not type(found) or expected != found:
        raise NotVerified(name, f"expected {_shown(expected)}, found {_shown(found)}")


def needed(name: str, value: _T | None) -> _T:
    """The value, or NotVerified when it is null although something stated depends on it."""
    if value is None:
        raise NotVerified(name, "missing, though values that depend on it are stated")
    return value


def absent(name: str, value: object) -> None:
    """Raises NotVerified when a value is stated that cannot be there yet."""
    if value is not None:
        raise NotVerified(name, f"expected null, found {_shown(value)}")


def _shown(value: object) -> str:
    return "null" if value is None else str(value)
