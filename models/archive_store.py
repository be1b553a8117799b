"""Where archives are kept: a small interface, and the form that every installation has, the database itself.

The one rule kept here: a key holds one content for ever. Putting the same again changes nothing; putting anything else
is refused.
"""

from collections.abc import Iterator
from functools import partial
from typing import BinaryIO, ClassVar, Protocol

from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from models.archives import PIECE, ArchiveFile
from models.binary_copy import copy_bytes_in, copy_bytes_out
from models.ranges import RangeFile
from protocol.errors import Conflict, NotFound


class ArchiveStore(Protocol):
    """What a store does. Keys are paths made of identifiers."""

    name: ClassVar[str]
    """How the rows of archives call it."""

    def put(self, key: str, file: BinaryIO) -> None:
        """Keep a file, read from its beginning.

        :raises Conflict: something else is kept under the key.
        """

    def open(self, key: str) -> RangeFile:
        """The file under the key, to be read in parts.

        :raises NotFound: there is none.
        """

    def delete(self, key: str) -> None:
        """Forget a file that no archive names. Without one, nothing happens."""


class PostgresStore:
    """Files as pieces of at most 1 MiB in the database. All of it is part of the session's transaction."""

    name: ClassVar[str] = "postgres"

    def __init__(self, session: Session) -> None:
        self._session = session

    def put(self, key: str, file: BinaryIO) -> None:
        """See ``ArchiveStore.put``."""
        size = file.seek(0, 2)
        file.seek(0)
        new = insert(ArchiveFile).values(key=key, bytes=size).on_conflict_do_nothing().returning(ArchiveFile.key)
        if self._session.scalars(new).first() is None:
            if not same_content(self.open(key), file):
                raise differs(key)
            return
        for place, content in enumerate(blocks(file)):
            fields = (key.encode(), place.to_bytes(8), content)
            copy_bytes_in(self._session, "archive_pieces (key, place, content)", fields)

    def open(self, key: str) -> RangeFile:
        """See ``ArchiveStore.open``."""
        size = self._session.scalars(select(ArchiveFile.bytes).where(ArchiveFile.key == key)).first()
        if size is None:
            raise missing(key)
        return RangeFile(size, partial(self._read, key))

    def delete(self, key: str) -> None:
        """See ``ArchiveStore.delete``. The database refuses it while an archive names the file."""
        self._session.execute(delete(ArchiveFile).where(ArchiveFile.key == key))

    def _read(self, key: str, start: int, end: int) -> bytes:
        query = (
            "SELECT substring(content FROM 1 + greatest(%(start)s - place * %(piece)s, 0)::int "
            "FOR least(%(end)s - place * %(piece)s, %(piece)s)::int - greatest(%(start)s - place * %(piece)s, 0)::int) "
            "FROM archive_pieces WHERE key = %(key)s AND place BETWEEN %(first)s AND %(last)s ORDER BY place"
        )
        places = {"first": start // PIECE, "last": (end - 1) // PIECE}
        return copy_bytes_out(self._session, query, {"key": key, "start": start, "end": end, "piece": PIECE} | places)


def blocks(file: BinaryIO | RangeFile) -> Iterator[bytes]:
    """The rest of a file, a piece at a time."""
    while block := file.read(PIECE):
        yield block


def same_content(kept: RangeFile, file: BinaryIO) -> bool:
    """Whether the kept file has this content, from its beginning to its end. Leaves ``file`` anywhere."""
    if kept.size != file.seek(0, 2):
        return False
    file.seek(0)
    return all(kept.read(len(block)) == block for block in blocks(file))


def differs(key: str) -> Conflict:
    """The error for other content under a key that is in use."""
    return Conflict(f"the archive {key} is kept with other content", code="archive_differs")


def missing(key: str) -> NotFound:
    """The error for a key that keeps nothing."""
    return NotFound(f"the archive {key} is not in its store", code="archive_missing")
