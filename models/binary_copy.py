"""Bytes to and from the database in COPY's binary form: a quarter of the price of a statement, which spells every byte
out.

The one rule kept here: this is all that is known of that form; whoever reads or writes bytes by the MiB comes here.
"""

import io
import struct
from collections.abc import Iterator
from typing import Any, cast

from sqlalchemy.orm import Session

_HEAD = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
_END = struct.pack(">h", -1)
_COUNT = struct.Struct(">h")
_LENGTH = struct.Struct(">i")


def copy_bytes_in(session: Session, target: str, row: tuple[bytes, ...]) -> None:
    """Add one row to ``table (columns)``, its fields in the binary form of their types."""
    with _cursor(session) as cursor:
        fields = b"".join(_LENGTH.pack(len(field)) + field for field in row)
        cursor.copy_expert(
            f"COPY {target} FROM STDIN (FORMAT binary)", io.BytesIO(_HEAD + _COUNT.pack(len(row)) + fields + _END)
        )


def copy_bytes_out(session: Session, query: str, values: dict[str, Any]) -> bytes:
    """What a query gives in its only column, one row after the other. ``%(name)s`` stands for a value."""
    taken = io.BytesIO()
    with _cursor(session) as cursor:
        selected = cursor.mogrify(query, values).decode()
        cursor.copy_expert(f"COPY ({selected}) TO STDOUT (FORMAT binary)", taken)
    return b"".join(_fields(taken.getbuffer()))


def _cursor(session: Session) -> Any:
    return cast(Any, session.connection().connection).cursor()


def _fields(copied: memoryview) -> Iterator[memoryview]:
    at = len(_HEAD)
    while _COUNT.unpack_from(copied, at)[0] == 1:
        (length,) = _LENGTH.unpack_from(copied, at + _COUNT.size)
        at += _COUNT.size + _LENGTH.size
        yield copied[at : at + length]
        at += length
