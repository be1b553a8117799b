"""Advancing a round: look at it, decide purely, carry one step out; again until there is nothing due.

The one rule kept here: each step is one transaction under the round's lock, and what it does is decided by
``protocol.lifecycle.decide`` from a frozen picture, by the database's clock.
"""

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Final

from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from models.draws import Draw
from models.participation import participations
from models.rounds import Round, lock_round
from models.session import database_now, transaction
from models.tabulations import agree
from models.work import Kind, remaining, results
from protocol.lifecycle import FINISHED, RoundView, State, Trigger, decide, next_due
from tasks import drawing, escrow, failing, sealing, settling
from tasks.bell import Bell, answers

log = logging.getLogger(__name__)

Step = Callable[[Session, Round, datetime], None]

STEPS: Final[Mapping[Trigger, Step]] = MappingProxyType(
    {
        Trigger.SALES_ENDED: sealing.end_sales,
        Trigger.NOBODY_JOINED: sealing.nobody_joined,
        Trigger.RECOUNT_AGREED: sealing.seal,
        Trigger.NOBODY_SEALED: sealing.seal_nobody,
        Trigger.ESCROW_COMPLETE: escrow.complete,
        Trigger.ESCROW_DEADLINE: escrow.complete_without_some,
        Trigger.NOBODY_PAID: escrow.nobody_paid,
        Trigger.SEED_FIXED: drawing.fix_seed,
        Trigger.MATCHING_COMPLETE: drawing.complete,
        Trigger.TABULATIONS_AGREED: settling.settle,
        Trigger.CLOSE_TIME: settling.close,
        Trigger.ABORTED: failing.abort,
    }
)


@answers(Bell.ROUND)
def advance_round(round_id: int) -> list[Trigger]:
    """Take a round as far as it can go now; returns the steps it took."""
    taken = []
    while trigger := advance_once(round_id):
        taken.append(trigger)
    return taken


def advance_once(round_id: int) -> Trigger | None:
    """Take a round one step; None when nothing is due or somebody else is at it."""
    with transaction() as session:
        row = lock_round(session, round_id)
        if row is None:
            return None
        now = database_now(session)
        if row.state is State.SEALED:
            escrow.collect(session, row, now)
        picture = view(session, row)
        trigger = decide(picture, now)
        if trigger is None:
            due = next_due(picture)
            # Past due and still nothing to do: it waits for work or for another round, which will wake it; the
            # scheduler looks again now and then all the same.
            if due is None or due > now:
                row.due_at = due
                row.ring_at = due or now
            return None
        STEPS[trigger](session, row, now)
    log.info("round advanced", extra={"round": round_id, "trigger": trigger.value})
    return trigger


def view(session: Session, row: Round) -> RoundView:
    """What the decision needs to know of the round, read under its lock."""
    everybody = participations(session, row.id)
    sealed = [part for part, manifest in everybody if manifest and manifest.agreed and part.excluded_at is None]
    before = session.scalars(select(Round.state).where(Round.id == row.id - 1)).first()
    tabulated = results(session, row.id, Kind.TABULATE)
    return RoundView(
        state=row.state,
        deadlines=row.deadlines,
        abort=row.abort_reason is not None,
        manifests=sum(manifest is not None for _, manifest in everybody),
        unverified=sum(manifest is not None and manifest.agreed is None for _, manifest in everybody),
        sealable=len(sealed),
        previous_finished=before is None or before in FINISHED,
        paid=sum(part.escrowed_at is not None for part in sealed),
        unpaid=sum(part.escrowed_at is None for part in sealed),
        unassessed=remaining(session, row.id, Kind.LIABILITY),
        seed_fixed=bool(session.scalar(select(exists().where(Draw.round_id == row.id)))),
        unmatched=remaining(session, row.id, Kind.MATCH),
        untabulated=remaining(session, row.id, Kind.TABULATE),
        tabulations_agree=agree(tabulated.values()),
    )
