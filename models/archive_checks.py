"""Checks of archives: reading one to its end and writing down what it was found to be.

The one rule kept here: a check says something about the archive only. A store that does not answer raises its own
error, and nothing is written down.
"""

from dataclasses import dataclass

from sqlalchemy import ForeignKeyConstraint, func, select, text
from sqlalchemy.orm import Mapped, Session, mapped_column

from models.archive_copies import UnusableArchive, checked_copy
from models.base import Base, Created, Identifier


class ArchiveCheck(Base):
    """The last time that an archive was read to its end, and whether it was what ``sha256`` says."""

    __tablename__ = "archive_checks"
    __table_args__ = (
        ForeignKeyConstraint(["round_id", "operator_id"], ["ticket_archives.round_id", "ticket_archives.operator_id"]),
    )

    round_id: Mapped[int] = mapped_column(primary_key=True)
    operator_id: Mapped[Identifier] = mapped_column(primary_key=True)
    sha256: Mapped[str]
    intact: Mapped[bool]
    checked_at: Mapped[Created]


@dataclass(frozen=True)
class Checked:
    """What a look at an archive found. ``fault``: None, or the ``code`` of ``UnusableArchive``."""

    round_id: int
    operator_id: str
    fault: str | None

    @property
    def intact(self) -> bool:
        """Whether every byte is as it was archived."""
        return self.fault is None


def check_archive(session: Session, round_id: int, operator_id: str) -> Checked:
    """Read an archive to its end, a piece at a time; compare length and hash with what is on record, and note it."""
    try:
        with checked_copy(session, round_id, operator_id):
            fault = None
    except UnusableArchive as error:
        fault = error.code
    note_check(session, round_id, operator_id, intact=fault is None)
    return Checked(round_id, operator_id, fault)


def note_check(session: Session, round_id: int, operator_id: str, *, intact: bool) -> None:
    """Write down what a look at an archive found, instead of what the last one did. Without an archive nothing is."""
    session.execute(_NOTE, {"round": round_id, "operator": operator_id, "intact": intact})


def damaged_archives(session: Session) -> int:
    """How many archives were damaged or missing when they were last read to their end."""
    return session.scalars(select(func.count()).where(ArchiveCheck.intact.is_(False))).one()


_NOTE = text("""
    INSERT INTO archive_checks (round_id, operator_id, sha256, intact)
    SELECT round_id, operator_id, sha256, :intact FROM ticket_archives
    WHERE round_id = :round AND operator_id = :operator
    ON CONFLICT (round_id, operator_id) DO UPDATE
    SET sha256 = excluded.sha256, intact = excluded.intact, checked_at = clock_timestamp()
""")
