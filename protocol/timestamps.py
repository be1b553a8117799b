"""How an instant is written, everywhere and always the same.

The rule: a timestamp is UTC with exactly three digits of milliseconds and a `Z`. Hashes take the string as it
was shown, so there is one way to write it.

Implements docs/protocol.md, section 1 (notation).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from protocol.errors import Invalid

_SHAPE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")


def format_timestamp(instant: datetime) -> str:
    """Writes an aware datetime as `2026-01-02T03:04:05.678Z`: UTC, finer digits cut off (docs/protocol.md,
    section 1).

    Raises ValueError for a datetime without a time zone: that is a programmer's slip, not somebody's input.
    """
    if instant.tzinfo is None or instant.utcoffset() is None:
        raise ValueError("a timestamp needs a time zone")
    utc = instant.astimezone(UTC)
    return f"{utc:%Y-%m-%dT%H:%M:%S}.{utc.microsecond // 1000:03d}Z".rjust(24, "0")


def parse_timestamp(text: str) -> datetime:
    """Reads exactly what `format_timestamp` writes, as an aware UTC datetime. Raises Invalid for anything
    else.
    """
    if not isinstance(text, str) or _SHAPE.fullmatch(text) is None:
        raise Invalid("a timestamp is written 2026-01-02T03:04:05.678Z")
    try:
        return datetime.fromisoformat(text)
    except ValueError as problem:
        raise Invalid(f"no such instant: {problem}") from None
