"""Chores: done when they are due, a small piece at a time, so that nobody waits behind them.

The one rule kept here: a piece is one short transaction, which also says when the next one is due. Killed in the
middle, nothing of it happened, and it is due as before.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from sqlalchemy.orm import Session

from models.archive_checks import Checked
from models.chores import Name, put_off, take
from models.retention import purge_deliveries
from models.session import transaction
from models.settings import settings
from models.ticket_drops import (
    check_archives,
    check_next_archive,
    detach_tickets,
    drop_tickets,
    droppable_rounds,
)
from tasks.bell import Bell, answers, ring_after_commit
from tasks.expiring import expire_next

log = logging.getLogger(__name__)

BATCH: Final = 1_000
"""Deliveries purged in one transaction at the most: some hundredths of a second."""
PAUSE_SECONDS: Final = 3_600.0
"""A chore with nothing left to do is looked at again after so long."""
LOST_SECONDS: Final = 60.0
"""One that goes on at once rings for itself. Nobody else does before so long, or the bells would add up."""


@dataclass(frozen=True)
class Piece:
    """A piece of a chore that was done: whether there may be more to do, and what the log says of it, if anything."""

    more: bool
    told: Mapping[str, Any]


@answers(Bell.CHORE)
def do_chore(name: str) -> bool:
    """Do one piece of a chore, if it is due and nobody else is at it; True if there may be more to do at once."""
    with transaction() as session:
        chore = take(session, Name(name))
        if chore is None:
            return False
        piece = _PIECES[Name(name)](session)
        if piece.more:
            put_off(session, chore, 0.0, LOST_SECONDS)
            ring_after_commit(session, Bell.CHORE, [name])
        else:
            put_off(session, chore, PAUSE_SECONDS, PAUSE_SECONDS)
    if piece.told:
        log.info("chore done", extra={"chore": name, **piece.told})
    return piece.more


def _purge_deliveries(session: Session) -> Piece:
    days = settings().webhook_retention_days
    purged = purge_deliveries(session, days, BATCH)
    told = asdict(purged) | {"older_than_days": days} if purged.deliveries else {}
    return Piece(purged.deliveries == BATCH, told)


def _expire_prizes(session: Session) -> Piece:
    told = expire_next(session)
    return Piece(told is not None, told or {})


def _drop_tickets(session: Session) -> Piece:
    """Check one archive, or drop the rows of one round. Whoever is in the way of a round is left to the next time."""
    days = settings().round_retention_days
    if days is None:
        return Piece(more=False, told={})
    checked = check_next_archive(session, days)
    if checked is not None:
        _tell_of_damage(checked)
        return Piece(more=True, told={})
    for round_id in droppable_rounds(session, days):
        if not detach_tickets(round_id):
            continue
        damaged = check_archives(session, round_id)
        if damaged is not None:
            _tell_of_damage(damaged)
        elif drop_tickets(session, round_id):
            return Piece(more=True, told={"round": round_id, "older_than_days": days})
    return Piece(more=False, told={})


def _tell_of_damage(checked: Checked) -> None:
    if not checked.intact:
        log.error("archive damaged", extra={"round": checked.round_id, "operator": checked.operator_id})


_PIECES: Final[Mapping[Name, Callable[[Session], Piece]]] = {
    Name.PURGE_DELIVERIES: _purge_deliveries,
    Name.EXPIRE_PRIZES: _expire_prizes,
    Name.DROP_TICKETS: _drop_tickets,
}
