"""Backups of archives: files in a folder, by the keys that they have in a store, and the copies made from them.

The one rule kept here: a backup appears whole or not at all, and is believed for its hash alone.
"""

import hashlib
import os
from pathlib import Path
from shutil import copyfileobj
from typing import IO

from sqlalchemy.orm import Session

from models.archive_copies import checked_copy
from models.archive_store import blocks
from models.archives import PIECE, TicketArchive, archive_key
from protocol.errors import Conflict


def _backup_of(archive: TicketArchive, place: Path) -> Path:
    """Where an archive's backup is: the file itself, or in a folder of backups, or in a copy of a bucket."""
    return place / archive_key(archive.round_id, archive.operator_id, archive.sha256) if place.is_dir() else place


def write_backup(session: Session, archive: TicketArchive, folder: Path) -> tuple[Path, bool]:
    """Write a backup of an archive; returns where, and whether it was not there yet.

    :raises UnusableArchive: it is damaged or missing; nothing is written.
    :raises OSError: the folder cannot be written to.
    """
    path = folder / archive_key(archive.round_id, archive.operator_id, archive.sha256)
    if path.is_file() and hash_of(path) == archive.sha256:
        return path, False
    with checked_copy(session, archive.round_id, archive.operator_id) as copy:
        path.parent.mkdir(parents=True, exist_ok=True)
        hidden = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            with hidden.open("wb") as file:
                copyfileobj(copy, file, PIECE)
                file.flush()
                os.fsync(file.fileno())
            hidden.replace(path)
        finally:
            hidden.unlink(missing_ok=True)
    return path, True


def read_backup(archive: TicketArchive, place: Path, file: IO[bytes]) -> None:
    """Copy an archive's backup into a file.

    :raises Conflict: it is none: there is no such file, or its bytes are others than were archived.
    """
    path, digest = _backup_of(archive, place), hashlib.sha256()
    if not path.is_file():
        raise Conflict(f"there is no backup {path}", code="no_backup")
    with path.open("rb") as backup:
        for block in blocks(backup):
            digest.update(block)
            file.write(block)
    if digest.hexdigest() != archive.sha256:
        raise Conflict(
            f"{path} is not what was archived of {archive.operator_id} in round {archive.round_id}: "
            f"its SHA-256 is {digest.hexdigest()}, not {archive.sha256}",
            code="archive_differs",
        )


def hash_of(path: Path) -> str:
    """The SHA-256 of a file (64 hex digits)."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
