"""What is inside an archive, held against what was sealed.

The one rule kept here: nothing of a file is understood before its hash was found right.
"""

from typing import Final

from sqlalchemy.orm import Session

from models.archive_checks import Checked, note_check
from models.archive_copies import DAMAGED, UnusableArchive
from models.archive_reader import ArchiveDamaged, ArchiveReader, open_copy
from models.participation import Manifest
from protocol.merkle import CHUNK, leaf_hash, root
from protocol.tickets import ticket_line

NOT_AS_SEALED: Final = "archive_not_as_sealed"
"""The file has its hash, but not the tickets that were sealed: somebody replaced both."""


def check_contents(session: Session, round_id: int, operator_id: str, *, roots: bool) -> Checked:
    """Check an archive's bytes and note it, as ``check_archive`` does, and its number of tickets. ``roots``: also hash
    every ticket to the root that was sealed, some 3 s a million; never more than a group of rows in memory.
    """
    try:
        with open_copy(session, round_id, operator_id) as reader:
            fault = None if _as_sealed(session, reader, roots) else NOT_AS_SEALED
    except UnusableArchive as error:
        fault = error.code
    except ArchiveDamaged:  # it has its hash and is no archive all the same
        fault = DAMAGED
    note_check(session, round_id, operator_id, intact=fault is None)
    return Checked(round_id, operator_id, fault)


def _as_sealed(session: Session, reader: ArchiveReader, roots: bool) -> bool:
    round_id, operator_id = reader.archive.round_id, reader.archive.operator_id
    sealed = session.get_one(Manifest, (round_id, operator_id))
    if not len(reader) == reader.archive.tickets == sealed.counted:
        return False
    if not roots:
        return True
    chunks = (reader.chunk(start, start + CHUNK) for start in range(0, len(reader), CHUNK))
    tops = (root(leaf_hash(ticket_line(round_id, operator_id, *ticket)) for ticket in chunk) for chunk in chunks)
    return root(tops).hex() == sealed.counted_root
