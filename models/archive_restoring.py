"""Putting a damaged or lost archive back, from a backup or from the rows.

The one rule kept here: what is put back has the hash that was written down with the recount, which never changes; or
nothing is. A damaged file is not written over: the archive gets a file beside it, and the damaged one stays, for
whoever looks for the cause.
"""

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedRandom
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, cast

import pyarrow
from psycopg2.errors import UniqueViolation
from sqlalchemy import select, text
from sqlalchemy.orm import Session

from models.archive_backups import read_backup
from models.archive_checks import check_archive
from models.archive_store import ArchiveStore
from models.archive_stores import store_called
from models.archives import TicketArchive, archive_key
from models.archiving import read_rows
from models.participation import Manifest
from models.tickets import partition
from protocol.errors import Conflict, LotteryError

FILES = 100
"""Damaged files of one archive after which it is given up."""
_TAIL = 1 << 12
_WRITER = re.compile(rb"parquet-cpp-arrow version ([0-9.]+)")


def held_archives(session: Session, round_id: int) -> list[TicketArchive]:
    """A round's archives, held until the transaction ends, so that two do not put them back at once."""
    query = select(TicketArchive).where(TicketArchive.round_id == round_id).order_by(TicketArchive.operator_id)
    return list(session.scalars(query.with_for_update(key_share=True)))


@contextmanager
def right_copy(session: Session, archive: TicketArchive, backup: Path | None) -> Iterator[BinaryIO]:
    """The archive as it has to be, in a file of this process alone: a backup's, or written from the rows again.

    :raises Conflict: the backup is another file; the rows were dropped, or give other bytes.
    """
    with TemporaryFile() as file:
        if backup is None:
            _write_again(session, archive, file)
        else:
            read_backup(archive, backup, file)
        yield cast(BinaryIO, file)


def put_back(session: Session, archive: TicketArchive, file: BinaryIO) -> None:
    """Keep this copy as the archive's file, and read it back.

    All of it is the session's transaction. A store outside of it keeps, should that fail, a file that nobody names.

    :raises LotteryError: it cannot be read back, which ends the transaction.
    """
    store = store_called(session, archive.store)
    first = archive_key(archive.round_id, archive.operator_id, archive.sha256)
    others = (first.replace(".parquet", f".{number}.parquet") for number in range(2, FILES))
    for key in chain([archive.key], others):
        if _taken(session, store, key, file):
            archive.key = key
            session.flush()
            break
    if not check_archive(session, archive.round_id, archive.operator_id).intact:
        raise LotteryError(f"the archive {archive.key} was put back and cannot be read back", code="archive_damaged")


def _taken(session: Session, store: ArchiveStore, key: str, file: BinaryIO) -> bool:
    """Put the file there; False when something else is there, or what is left of it."""
    savepoint = session.begin_nested()
    try:
        store.put(key, file)
    except (ConnectionError, TimeoutError):
        raise
    except (Conflict, OSError, UniqueViolation):
        savepoint.rollback()
        return False
    savepoint.commit()
    return True


def _write_again(session: Session, archive: TicketArchive, file: BufferedRandom) -> None:
    of = archive.round_id, archive.operator_id
    named = f"the rows of {archive.operator_id} in round {archive.round_id}"
    if session.scalar(text("SELECT to_regclass(:name)"), {"name": partition(archive.round_id)}) is None:
        raise Conflict(f"{named} were dropped: a backup is needed", code="rows_dropped")
    reading = read_rows(session, *of, file)
    file.seek(0)
    if hashlib.file_digest(file, "sha256").hexdigest() == archive.sha256:
        return
    sealed = session.get_one(Manifest, of)
    if (reading.count, reading.root) != (sealed.counted, sealed.counted_root):
        raise Conflict(f"{named} are not what was sealed: a backup is needed", code="rows_not_as_sealed")
    wrote = _written_with(session, archive)
    raise Conflict(
        f"{named} are what was sealed, but pyarrow {pyarrow.__version__} writes them as other bytes than were archived"
        f"{f' by {wrote}' if wrote else ''}: a backup is needed, or this command with the pyarrow of then",
        code="archive_differs",
    )


def _written_with(session: Session, archive: TicketArchive) -> str | None:
    """What the end of the damaged file says of who wrote it, as far as it can be read."""
    try:
        file = store_called(session, archive.store).open(archive.key)
        file.seek(max(file.size - _TAIL, 0))
        found = _WRITER.search(file.read())
    except (LotteryError, OSError):
        return None
    return f"pyarrow {found[1].decode()}" if found else None
