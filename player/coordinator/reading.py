"""Reading answers into values: every field that a value has must be there and of its kind.

The one rule kept here: names are the published ones, in snake_case (`ticketPriceUsdc` is `ticket_price_usdc`), and what
a value does not know is ignored, so that a newer coordinator breaks nobody.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache
from typing import Any, NewType, TypeVar, Union, get_args, get_origin, get_type_hints

from player.coordinator.errors import Unreadable
from protocol.errors import LotteryError
from protocol.timestamps import parse_timestamp

Micro = NewType("Micro", int)
"""An amount in micro-USDC (1 USD is 1,000,000): a whole number here, also where it is a string on the wire."""

_T = TypeVar("_T")
_Reader = Callable[[Any], Any]


def read(kind: type[_T], answer: Any, request: str) -> _T:
    """The answer to `request` as a value.

    :raises Unreadable: it lacks a field, or has one of another kind.
    """
    shape: Any = kind
    try:
        value: _T = _reader(shape)(answer)
    except (TypeError, ValueError, LookupError, LotteryError) as problem:
        raise Unreadable(request, f"the answer is not a {kind.__name__.strip('_')} ({problem})") from None
    return value


def read_list(kind: type[_T], name: str, answer: Any, request: str) -> tuple[_T, ...]:
    """The values in the list that stands in an answer under this published name.

    :raises Unreadable: there is none, or something else in it.
    """
    if not isinstance(answer, dict) or not isinstance(answer.get(name), list):
        raise Unreadable(request, f"the answer has no list {name}")
    return tuple(read(kind, one, request) for one in answer[name])


@cache
def _reader(kind: Any) -> _Reader:
    if kind is Micro:
        return _micro
    if kind is datetime:
        return parse_timestamp
    if is_dataclass(kind):
        return _of_object(kind)
    if get_origin(kind) is tuple:
        each = _reader(get_args(kind)[0])
        return lambda value: tuple(each(one) for one in _exactly(list, value))
    if get_origin(kind) in (types.UnionType, Union):
        (some,) = (each for each in get_args(kind) if each is not types.NoneType)
        present = _reader(some)
        return lambda value: None if value is None else present(value)
    plain = get_origin(kind) or kind
    return lambda value: _exactly(plain, value)


def _of_object(kind: Any) -> _Reader:
    hints = get_type_hints(kind)
    # Optional besides null: what is in an answer only at times has a default.
    parts = [(f.name, _published(f.name), _reader(hints[f.name]), f.default is None) for f in fields(kind)]

    def of_object(value: Any) -> Any:
        given = _exactly(dict, value)
        found = {}
        for name, published, reader, optional in parts:
            if published not in given:
                if optional:
                    continue
                raise LookupError(f"no {published}")
            try:
                found[name] = reader(given[published])
            except (TypeError, ValueError, LotteryError) as problem:
                raise ValueError(f"{published}: {problem}") from None
        return kind(**found)

    return of_object


def _published(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def _exactly(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise TypeError(f"not {kind.__name__}")
    return value


def _micro(value: Any) -> int:
    if type(value) is str:
        digits = value.removeprefix("-")
        if not (digits.isascii() and digits.isdigit()):
            raise ValueError("not an amount")
        return int(value)
    return int(_exactly(int, value))
