"""A copy of an archive to count from: fetched once, hashed on the way, and read from nowhere else afterwards.

The one rule kept here: what is counted is what was hashed. The copy lies in a file of this process alone, so nothing
can change between the check and the count, and its size costs disk and no memory.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import BinaryIO, Final, cast

from sqlalchemy.orm import Session

from models.archive_store import blocks
from models.archive_stores import store_called
from models.archives import TicketArchive, archive_of
from protocol.errors import LotteryError, NotFound

MISSING: Final = "archive_missing"
DAMAGED: Final = "archive_damaged"


class UnusableArchive(LotteryError):
    """An archive that nothing may be counted from. ``code`` says why: ``MISSING`` or ``DAMAGED``."""


@contextmanager
def checked_copy(session: Session, round_id: int, operator_id: str) -> Iterator[BinaryIO]:
    """An operator's archive as a file, at its beginning, that has the hash that was written down with the recount.

    :raises UnusableArchive: there is none, or it is another. A store that cannot be reached raises its own error: that
        says nothing about the archive.
    """
    named = f"r{round_id}/{operator_id}"
    archive = archive_of(session, round_id, operator_id)
    if archive is None:
        raise UnusableArchive(f"there is no archive {named}", code=MISSING)
    digest = hashlib.sha256()
    with TemporaryFile() as file:
        for block in _fetched(session, archive, named):
            digest.update(block)
            file.write(block)
        if digest.hexdigest() != archive.sha256 or file.tell() != archive.bytes:
            raise UnusableArchive(f"the archive {named} is not what was archived", code=DAMAGED)
        file.seek(0)
        yield cast(BinaryIO, file)


def _fetched(session: Session, archive: TicketArchive, named: str) -> Iterator[bytes]:
    """The archive's bytes as its store gives them. What befalls whoever takes them, a full disk, is not its fault."""
    try:
        yield from blocks(store_called(session, archive.store).open(archive.key))
    except NotFound as error:
        raise UnusableArchive(f"the archive {named} is not in its store", code=MISSING) from error
    except (ConnectionError, TimeoutError):
        raise
    except OSError as error:  # it is shorter than it says
        raise UnusableArchive(f"the archive {named} cannot be read to its end", code=DAMAGED) from error
