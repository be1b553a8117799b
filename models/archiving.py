"""Recounting and archiving: an operator's tickets are read once, hashed for their root and written into their archive.

The one rule kept here: the root and the archive come out of the same bytes of the same reading, so neither can be of
other tickets than the other.
"""

import hashlib
from hashlib import sha256
from tempfile import TemporaryFile
from typing import IO, Any, cast

from sqlalchemy.orm import Session

from models.archive_store import ArchiveStore
from models.archive_writer import COPIED, ArchiveWriter
from models.archives import TicketArchive, archive_key
from models.chunks import BLOCK_HEIGHT, Chunk, keep_chunks
from models.tickets import copy_in_order
from protocol.merkle import CHUNK, ancestors, root
from protocol.tickets import ticket_line

# A boolean as a word, as it stands in a ticket's line.
_WRITTEN = [name.replace("is_quick_pick", "is_quick_pick::text") for name in COPIED]


def archive_tickets(session: Session, round_id: int, operator_id: str, store: ArchiveStore) -> tuple[int, str]:
    """Hash an operator's tickets in their order and archive them; returns their number and their root (64 hex digits).

    The chunks and the archive are on record when it returns, in the session's transaction. A store outside of it has
    the file before: should the transaction fail, it keeps what nobody names, and the same again is no work.
    """
    with TemporaryFile() as file:
        reading = read_rows(session, round_id, operator_id, file)
        size = file.tell()
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        key = archive_key(round_id, operator_id, digest)
        store.put(key, file)
    keep_chunks(session, round_id, operator_id, reading.chunks)
    session.add(
        TicketArchive(
            round_id=round_id,
            operator_id=operator_id,
            sha256=digest,
            bytes=size,
            tickets=reading.count,
            store=store.name,
            key=key,
        )
    )
    return reading.count, reading.root


def read_rows(session: Session, round_id: int, operator_id: str, file: IO[bytes]) -> "Reading":
    """Read an operator's rows once, in their order, and write them into a file as an archive; put nothing on record."""
    with ArchiveWriter(file) as writer:
        reading = Reading(round_id, operator_id, writer)
        copy_in_order(session, round_id, operator_id, _WRITTEN, "\t", reading)
        reading.finish()
    return reading


class Reading:
    """Takes tickets as COPY gives them, one row a call, and makes chunks of them: hashed, and added to the archive.

    ``count``: tickets so far; ``root``: the root over them (64 hex digits), once it is finished.
    """

    def __init__(self, round_id: int, operator_id: str, writer: ArchiveWriter) -> None:
        self.count = 0
        self.chunks: list[Chunk] = []
        self._leaf = leaf_template(round_id, operator_id)
        self._writer = writer
        self._rows: list[bytes] = []

    @property
    def root(self) -> str:
        return root(chunk.root for chunk in self.chunks).hex()

    def write(self, row: bytes) -> None:
        """Take one ticket: ``COPIED``, separated by tabs, with a line end."""
        self._rows.append(row)
        if len(self._rows) == CHUNK:
            self.finish()

    def finish(self) -> None:
        """Make a chunk of what is there, if anything is."""
        if not self._rows:
            return
        leaf = self._leaf
        leaves = [sha256(leaf % tuple(row[:-1].split(b"\t"))).digest() for row in self._rows]
        blocks = ancestors(leaves, BLOCK_HEIGHT)
        first = self._rows[0][:-1].rpartition(b"\t")[2].decode("ascii")
        self.chunks.append(Chunk(first, root(blocks), b"".join(blocks)))
        self.count += len(self._rows)
        self._writer.add(b"".join(self._rows))
        self._rows = []


def leaf_template(round_id: int, operator_id: str) -> bytes:
    """What is hashed for a leaf of this operator, with a ``%b`` for each of ``COPIED``.

    A template filled in by the interpreter costs a quarter of the published function, which it is made from.
    """
    blank = cast(Any, "%b")
    line = ticket_line(round_id, operator_id, blank, blank, blank, blank, blank, blank, blank, is_quick_pick=True)
    return b"\x00" + line.replace(b'"isQuickPick":true', b'"isQuickPick":%b')
