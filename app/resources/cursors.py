"""Paging by cursor: where the last page ended, written so that nobody is tempted to make one up.

The one rule kept here: a cursor is a place in an order, not a number of rows to skip; what is written meanwhile neither
hides a row nor shows one twice.
"""

import base64
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from marshmallow import ValidationError, fields

from app.fields import QueryWhole
from app.resources.paging import LARGEST_PAGE
from protocol.identifiers import is_identifier

T = TypeVar("T")

DEFAULT_PAGE = 50
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _identifier(part: Any) -> str:
    if not (isinstance(part, str) and is_identifier(part)):
        raise ValueError
    return part


class Cursor(fields.String):
    """A cursor as we gave it out, read back into the values of a place, each of its kind."""

    KINDS: dict[type, Callable[[Any], Any]] = {
        datetime: lambda micros: _EPOCH + timedelta(microseconds=micros),
        UUID: UUID,
        int: int,
        str: _identifier,
    }

    def __init__(self, *kinds: type, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.kinds = kinds

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        text = super()._deserialize(value, attr, data, **kwargs)
        try:
            written = json.loads(base64.urlsafe_b64decode(text.encode("ascii") + b"=="))
            place = tuple(self.KINDS[kind](part) for kind, part in zip(self.kinds, written, strict=True))
            # Only what we would have written ourselves: exact types, no other spelling.
            if cursor_at(*place) != text or any(isinstance(part, int) and not 0 < part < 2**63 for part in place):
                raise ValueError
        except (ValueError, TypeError, AttributeError, RecursionError, OverflowError):
            raise ValidationError("Not a cursor: use nextCursor of the page before.") from None
        return place


def cursor_at(*place: datetime | UUID | int | str) -> str:
    """The cursor of a place."""
    written = json.dumps([_plain(part) for part in place], separators=(",", ":"))
    return base64.urlsafe_b64encode(written.encode()).decode().rstrip("=")


def _plain(part: datetime | UUID | int | str) -> int | str:
    if isinstance(part, datetime):
        return (part - _EPOCH) // timedelta(microseconds=1)
    return part if isinstance(part, int) else str(part)


def page_limit() -> QueryWhole:
    """A query field: rows a page, from 1 to 200, 50 unless given."""
    return QueryWhole(lowest=1, highest=LARGEST_PAGE, load_default=DEFAULT_PAGE)


def page_of(rows: Sequence[T], limit: int, place: Callable[[T], str]) -> tuple[Sequence[T], str | None]:
    """Cut ``limit`` + 1 rows down to a page; also the next page's cursor, None when this is the last."""
    page = rows[:limit]
    return page, place(page[-1]) if len(rows) > limit else None
