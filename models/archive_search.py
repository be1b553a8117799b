"""Which archives there are and how each stands, for the people who look after them.

The one rule kept here: nothing of an archive's file is read; this is what is on record.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from models.archive_checks import ArchiveCheck
from models.archives import TicketArchive
from models.ticket_drops import TicketDrop


class Standing(NamedTuple):
    """An archive; when the rows of its round were dropped; and what the last check found, if there was one."""

    archive: TicketArchive
    dropped_at: datetime | None
    intact: bool | None
    checked_at: datetime | None


def standings(session: Session, round_id: int | None, limit: int, offset: int) -> list[Standing]:
    """A page of the archives of one round or of all, the newest round first, in the byte order of operators' ids."""
    query = (
        select(TicketArchive, TicketDrop.dropped_at, ArchiveCheck.intact, ArchiveCheck.checked_at)
        .outerjoin(TicketDrop, TicketDrop.round_id == TicketArchive.round_id)
        .outerjoin(
            ArchiveCheck,
            (ArchiveCheck.round_id == TicketArchive.round_id) & (ArchiveCheck.operator_id == TicketArchive.operator_id),
        )
        .order_by(TicketArchive.round_id.desc(), TicketArchive.operator_id)
        .limit(limit)
        .offset(offset)
    )
    if round_id is not None:
        query = query.where(TicketArchive.round_id == round_id)
    return [Standing(*row) for row in session.execute(query)]


def archived(session: Session, round_ids: Sequence[int]) -> list[tuple[int, str]]:
    """Round and operator of every archive of these rounds, or of all when none is named, in their order."""
    query = select(TicketArchive.round_id, TicketArchive.operator_id).order_by(
        TicketArchive.round_id, TicketArchive.operator_id
    )
    if round_ids:
        query = query.where(TicketArchive.round_id.in_(round_ids))
    return [(found, operator_id) for found, operator_id in session.execute(query)]
