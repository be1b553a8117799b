"""Marshmallow fields for the kinds of values the interface has, each refusing what merely looks like one.

The one rule kept here: no coercion. A number is a JSON number, a boolean a JSON boolean, a string something that
PostgreSQL can store.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from marshmallow import Schema, ValidationError, fields
from marshmallow.validate import Length, OneOf, Range, Regexp

from protocol.identifiers import IDENTIFIER_PATTERN
from protocol.lifecycle import State

LARGEST_SAFE = 2**53 - 1
"""The largest whole number that every JSON reader keeps exact."""
LARGEST_ODDS_RANGE = 3_000_000_000
"""The last rung of the odds ladder (interface section 2.5)."""


def described(kwargs: dict[str, Any], **facts: Any) -> dict[str, Any]:
    """A field's arguments with facts for its schema that marshmallow has no validator for."""
    return {**kwargs, "metadata": {**facts, **kwargs.get("metadata", {})}}


class Text(fields.String):
    """A string without NUL and without half of a surrogate pair, at most ``longest`` characters (default 1,000)."""

    SHAPE = r"^[^\u0000]*$"

    def __init__(self, *, longest: int = 1_000, shortest: int = 0, **kwargs: Any) -> None:
        rules = kwargs.pop("validate", ())
        if not any(isinstance(rule, Regexp) for rule in rules):
            kwargs = described(kwargs, pattern=self.SHAPE)
        super().__init__(validate=[Length(min=shortest, max=longest), *rules], **kwargs)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        if text is not None and ("\0" in text or any("\ud800" <= char <= "\udfff" for char in text)):
            raise ValidationError("Contains a character that cannot be stored.")
        return str(text)


class Filled(Text):
    """A string that holds more than blanks and control characters."""

    # Spelled out: what \s is beyond this differs from one language's expressions to the next.
    _BLANK = r"\s\u0000-\u001f\u007f-\u009f\ufeff"
    _VISIBLE = re.compile(f"[^{_BLANK}]")
    SHAPE = rf"^[^\u0000]*[^{_BLANK}][^\u0000]*$"

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        if not self._VISIBLE.search(text):
            raise ValidationError("Must not be empty.")
        return text


class Whole(fields.Integer):
    """A whole JSON number from ``lowest`` to ``highest``."""

    def __init__(self, *, lowest: int = 0, highest: int = LARGEST_SAFE, **kwargs: Any) -> None:
        super().__init__(strict=True, validate=Range(min=lowest, max=highest), **kwargs)


class QueryWhole(fields.Integer):
    """A whole number in a query string, from ``lowest`` to ``highest``."""

    def __init__(self, *, lowest: int, highest: int, **kwargs: Any) -> None:
        super().__init__(validate=Range(min=lowest, max=highest), **kwargs)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        if not (isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 18):
            raise self.make_error("invalid", input=value)
        return super()._deserialize(value, attr, data, **kwargs)


class Truth(fields.Boolean):
    """true or false, not something like it."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> bool:
        if not isinstance(value, bool):
            raise self.make_error("invalid", input=value)
        return value


class Amount(fields.String):
    """micro-USDC as a decimal string, from 1 to 2⁶³−1."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**described(kwargs, pattern="^[1-9][0-9]{0,18}$"))

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        text = super()._deserialize(value, attr, data, **kwargs)
        usable = text.isascii() and text.isdigit() and not text.startswith("0") and len(text) <= 19
        if not usable or int(text) >= 2**63:
            raise ValidationError("Not an amount: a whole number of micro-USDC from 1 on, as a string.")
        return int(text)

    def _serialize(self, value: Any, attr: str | None, obj: Any, **kwargs: Any) -> Any:
        return None if value is None else str(value)


class Moment(fields.String):
    """An ISO 8601 timestamp with its offset, read into UTC; shown with ``Z`` and milliseconds."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**described(kwargs, format="date-time"))

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        text = super()._deserialize(value, attr, data, **kwargs)
        try:
            moment = datetime.fromisoformat(text)
            if moment.tzinfo is None:
                raise ValueError
            # PostgreSQL reads offsets up to 15:59 only; ISO 8601 has them up to 23:59.
            return moment.astimezone(UTC)
        except (ValueError, OverflowError):
            raise ValidationError("Not an ISO 8601 timestamp with an offset, such as 2026-01-31T20:00:00Z.") from None


def identifier(**kwargs: Any) -> Text:
    """A field for ids as the protocol allows them."""
    rule = Regexp(f"^{IDENTIFIER_PATTERN}\\Z", error="Not an identifier: 1 to 64 of letters, digits and . _ : -")
    return Text(longest=64, validate=[rule], **kwargs)


def ethereum_address(**kwargs: Any) -> Text:
    """A field for an Ethereum address."""
    rule = Regexp(r"^0x[0-9a-fA-F]{40}\Z", error="Not 0x and 40 hex digits.")
    return Text(longest=42, validate=[rule], **kwargs)


def hex_hash(**kwargs: Any) -> Text:
    """A field for a SHA-256 in hex."""
    return Text(longest=64, validate=[Regexp("^[0-9a-f]{64}\\Z", error="Not 64 lowercase hex digits.")], **kwargs)


def hashes(**kwargs: Any) -> fields.String:
    """A field for SHA-256 hashes one after the other, in base64 (``protocol.merkle.write_path``)."""
    shape = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
    return fields.String(**described(kwargs, contentEncoding="base64", pattern=shape))


class Shown(fields.String):
    """A timestamp as we show it: UTC with ``Z`` and milliseconds (``protocol.timestamps``)."""

    def __init__(self, **kwargs: Any) -> None:
        shape = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$"
        super().__init__(**described(kwargs, format="date-time", pattern=shape))


class Micro(fields.String):
    """An amount as we show large ones: micro-USDC as a decimal string, from 0 on."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**described(kwargs, pattern="^(0|[1-9][0-9]*)$"))


class SignedMicro(fields.String):
    """An amount that may be negative: micro-USDC as a decimal string."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**described(kwargs, pattern="^(0|-?[1-9][0-9]*)$"))


class Count(fields.String):
    """A number of tickets that may outgrow what every JSON reader keeps exact, hence a decimal string."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**described(kwargs, pattern="^(0|[1-9][0-9]*)$"))


class Usd(fields.String):
    """US dollars with two decimals, as a string."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**described(kwargs, pattern=r"^(0|[1-9][0-9]*)\.[0-9]{2}$"))


class AsIs(fields.Nested):
    """A nested object that is shown exactly as it is on record; the schema says what that looks like."""

    def _serialize(self, nested_obj: Any, attr: Any, obj: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        return nested_obj


class OneKindOf(fields.Field):
    """A value that looks as one of several schemas says; shown exactly as it is."""

    def __init__(self, *kinds: type[Schema], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.kinds = kinds


def one_of(values: Iterable[str], **kwargs: Any) -> fields.String:
    """A field for one of a few words."""
    return fields.String(validate=OneOf([str(value) for value in values]), **kwargs)


def round_state(example: str = "CLOSED", **kwargs: Any) -> fields.String:
    """A field for a round's state; ``example`` is the one its documentation shows."""
    return one_of(State, **described({"required": True, **kwargs}, examples=[example]))
