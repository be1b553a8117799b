"""A round from the operator's side, one look at a time, from the first sale to the last reported prize.

The one rule kept here: a look does the next thing for the round's stage and writes down what came of it, so whoever
looks next, after whatever death, goes on from there. No session is open while the coordinator is asked.
"""

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Final

import dramatiq

from player.coordinator import CoordinatorError, TryLater
from player.models.looks import MovedOn, note_look
from player.models.rounds import Round, Stage
from player.models.session import database_now, transaction
from player.tasks.asking import again_at, coordinator
from player.tasks.binding import bind
from player.tasks.broker import QUEUE, broker
from player.tasks.checking import check
from player.tasks.due import put_back, take
from player.tasks.looking import Disagreement, Look
from player.tasks.paying import pay, settle
from player.tasks.revealing import reveal
from player.tasks.sending import sell

log = logging.getLogger(__name__)

STEPS: Final[Mapping[Stage, Callable[[Look], datetime | None]]] = MappingProxyType(
    {
        Stage.SELLING: sell,
        Stage.CLOSED: bind,
        Stage.BOUND: reveal,
        Stage.REVEALED: check,
        Stage.CHECKED: settle,
        Stage.PAYABLE: pay,
    }
)
"""What is done in each stage; each returns when to look again, None for never."""


@dramatiq.actor(broker=broker, queue_name=QUEUE)
def advance_round(row_id: str) -> None:
    """Take a round as far as it goes now."""
    while look_at(int(row_id)):
        pass


def look_at(round_id: int) -> bool:
    """One look; whether the next one is due at once."""
    row = take(Round, round_id)
    if row is None:
        return False
    with transaction() as session:
        now = database_now(session)
    look = Look(row, now, coordinator())
    error: str | None = None
    try:
        due = STEPS[look.stage](look)
    except MovedOn:
        due = now
    except (CoordinatorError, Disagreement) as problem:
        error = str(problem)
        due = again_at(now, row.attempts + 1, row.seal_at)
        _tell(row, error, loudly=not isinstance(problem, TryLater))
    with transaction() as session:
        note_look(session, round_id, look.told.state if look.told else None, error)
    put_back(row, due)
    return error is None and due == now


def _tell(row: Round, error: str, loudly: bool) -> None:
    # Once, not at every look: a round that has stopped is looked at for as long as it has not gone on.
    if error != row.last_error:
        log.log(
            logging.ERROR if loudly else logging.WARNING,
            "round does not go on",
            extra={"round": row.id, "stage": row.stage, "error": error},
        )
