"""Marshmallow fields for the kinds of values this API has, each refusing what merely looks like one.

The one rule kept here: no coercion. A number is a JSON number, a boolean a JSON boolean, a string something that
PostgreSQL can store, an amount a string of digits.
"""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from marshmallow import Schema, ValidationError, fields
from marshmallow.validate import Length, OneOf, Range

from protocol.timestamps import format_timestamp

LARGEST_AMOUNT = 10**15
"""The largest amount that can be asked for, micro-USDC: a thousand million USD."""


class Text(fields.String):
    """A string of ``shortest`` to ``longest`` characters, at least one of them not blank if any is asked for."""

    def __init__(self, *, longest: int = 200, shortest: int = 0, **kwargs: Any) -> None:
        super().__init__(validate=Length(min=shortest, max=longest), **kwargs)
        self._shortest = shortest

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text = str(super()._deserialize(value, attr, data, **kwargs))
        if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
            raise ValidationError("Contains a character that cannot be stored.")
        if self._shortest and not text.strip():
            raise ValidationError("Is blank.")
        return text


class Whole(fields.Integer):
    """A whole JSON number from ``lowest`` to ``highest``."""

    def __init__(self, *, lowest: int = 0, highest: int = 2**53 - 1, **kwargs: Any) -> None:
        super().__init__(strict=True, validate=Range(min=lowest, max=highest), **kwargs)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        if isinstance(value, (bool, str)):
            raise self.make_error("invalid", input=value)
        return super()._deserialize(value, attr, data, **kwargs)


class QueryWhole(fields.Integer):
    """A whole number in a query string, from ``lowest`` to ``highest``, in digits only."""

    def __init__(self, *, lowest: int, highest: int, **kwargs: Any) -> None:
        super().__init__(validate=Range(min=lowest, max=highest), **kwargs)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        if not re.fullmatch("[0-9]{1,18}", str(value)):
            raise self.make_error("invalid", input=value)
        return super()._deserialize(value, attr, data, **kwargs)


class Truth(fields.Boolean):
    """true or false, not something like it."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> bool:
        if not isinstance(value, bool):
            raise self.make_error("invalid", input=value)
        return value


class Amount(fields.String):
    """micro-USDC as a decimal string; read from ``lowest`` (default 1) to LARGEST_AMOUNT, shown with its sign."""

    def __init__(self, *, lowest: int = 1, metadata: dict[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(metadata={"pattern": "^(0|-?[1-9][0-9]*)$", **(metadata or {})}, **kwargs)
        self._lowest = lowest

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        text = super()._deserialize(value, attr, data, **kwargs)
        if not re.fullmatch("0|[1-9][0-9]{0,15}", str(text)) or not self._lowest <= int(str(text)) <= LARGEST_AMOUNT:
            raise ValidationError(
                f"Not an amount: a whole number of micro-USDC from {self._lowest} to {LARGEST_AMOUNT}, as a string."
            )
        return int(str(text))

    def _serialize(self, value: Any, attr: str | None, obj: Any, **kwargs: Any) -> Any:
        return None if value is None else str(value)


class Moment(fields.String):
    """A timestamp as we show it: UTC with ``Z`` and milliseconds."""

    def _serialize(self, value: Any, attr: str | None, obj: Any, **kwargs: Any) -> Any:
        return format_timestamp(value) if isinstance(value, datetime) else value


class Page(Schema):
    """Which part of a list: ``limit`` 1 to 200 (default 50), ``offset`` from 0 (interface section 8)."""

    limit = QueryWhole(lowest=1, highest=200, load_default=50)
    offset = QueryWhole(lowest=0, highest=2**53 - 1, load_default=0)


def one_of(values: Iterable[str], **kwargs: Any) -> fields.String:
    """A field for one of a few words."""
    return fields.String(validate=OneOf(list(values)), **kwargs)
