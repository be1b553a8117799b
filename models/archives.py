"""Archives: what an operator sealed, as one file that never changes, and where that file is kept.

The one rule kept here: an archive is named by the hash of its bytes, and whoever counts from it checks that hash first.
What an archive is never changes, and no file that one names is altered or deleted (triggers). Only where its file lies
may change, when it was damaged and is put back.
"""

from sqlalchemy import CheckConstraint, ForeignKey, ForeignKeyConstraint, LargeBinary, UniqueConstraint
from sqlalchemy.orm import Mapped, Session, mapped_column

from models.base import Base, Created, Identifier

PIECE = 1 << 20
"""Bytes in a piece of a file that is kept in the database. A trigger counts on it."""


class TicketArchive(Base):
    """The archive of one operator's tickets in one round, written with the recount.

    ``sha256`` (64 hex digits) and ``bytes`` are those of the file, ``tickets`` how many rows it has; ``store`` and
    ``key`` say where it is.
    """

    __tablename__ = "ticket_archives"
    __table_args__ = (
        ForeignKeyConstraint(["round_id", "operator_id"], ["manifests.round_id", "manifests.operator_id"]),
        UniqueConstraint("store", "key"),
    )

    round_id: Mapped[int] = mapped_column(primary_key=True)
    operator_id: Mapped[Identifier] = mapped_column(primary_key=True)
    sha256: Mapped[str]
    bytes: Mapped[int]
    tickets: Mapped[int]
    store: Mapped[str]
    key: Mapped[Identifier]
    created_at: Mapped[Created]


class ArchiveFile(Base):
    """A file kept in the database: its whole length. Deleted only when no archive names it (a trigger)."""

    __tablename__ = "archive_files"

    key: Mapped[Identifier] = mapped_column(primary_key=True)
    bytes: Mapped[int]
    created_at: Mapped[Created]


class ArchivePiece(Base):
    """``PIECE`` bytes of a file, the last one fewer; ``place`` counts from 0."""

    __tablename__ = "archive_pieces"
    __table_args__ = (CheckConstraint("place >= 0", name="counted_from_zero"),)

    key: Mapped[Identifier] = mapped_column(ForeignKey("archive_files.key", ondelete="CASCADE"), primary_key=True)
    place: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    content: Mapped[bytes] = mapped_column(LargeBinary)


def archive_key(round_id: int, operator_id: str, sha256: str) -> str:
    """The key under which an archive is kept at first, in any store, and the path of its backup in a folder."""
    return f"r{round_id}/{operator_id}/{sha256}.parquet"


def archive_of(session: Session, round_id: int, operator_id: str) -> TicketArchive | None:
    """An operator's archive; None before its recount, and in rounds from before there were archives."""
    return session.get(TicketArchive, (round_id, operator_id))
