"""Finding rows that are due and ringing for them: what the scheduler does at every tick.

The one rule kept here: whoever rings for a row first pushes its ``ring_at`` ahead and commits, so any number of
schedulers ring once, and a bell that gets lost is rung again when that time is over. Nobody rings for a paused queue.

Webhooks are one source with one bell: it is rung while anything can be leased, unless bells wait unheard already.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from models.chores import Chore
from models.leases import anything_to_lease
from models.operators import Operator
from models.queues import pauses
from models.requeue_jobs import RequeueJob
from models.rounds import Round, RoundSchedule
from models.session import transaction
from models.work import Piece
from tasks.bell import MOST_BELLS, Bell, RowId, ring, ring_after_commit, unheard

DueTable = type[Round] | type[Piece] | type[Operator] | type[RoundSchedule] | type[RequeueJob] | type[Chore]


@dataclass(frozen=True)
class Source:
    """A table of due rows, the bell for them, and after how many seconds a bell counts as lost."""

    table: DueTable
    bell: Bell
    ring_again_seconds: float


SOURCES: Final = (
    Source(Round, Bell.ROUND, 1.0),
    Source(Piece, Bell.PIECE, 2.0),
    Source(RoundSchedule, Bell.SCHEDULE, 5.0),
    Source(Operator, Bell.HEARTBEAT, 5.0),
    Source(RequeueJob, Bell.REQUEUE, 5.0),
    Source(Chore, Bell.CHORE, 60.0),
)
BATCH: Final = 500
"""Rows of one table rung for in one tick at the most."""


def ring_due() -> int:
    """Ring for every due row of every table whose queue is not paused; returns how many bells were rung."""
    with transaction() as session:
        paused = pauses(session)
    rung = sum(_ring_due_of(source) for source in SOURCES if source.bell.queue not in paused)
    return rung + (0 if Bell.DELIVERIES.queue in paused else _ring_for_deliveries())


def _ring_for_deliveries() -> int:
    with transaction() as session:
        due = anything_to_lease(session)
    # Bells that nobody hears must not pile up in Redis for as long as there is no worker.
    return int(due and unheard(Bell.DELIVERIES) < MOST_BELLS and ring(Bell.DELIVERIES))


def _ring_due_of(source: Source) -> int:
    with transaction() as session:
        ids = _mark_due(session, source)
    return sum(ring(source.bell, row_id) for row_id in ids)


def ring_again(session: Session, queue: str) -> None:
    """Ring after the commit for what is due of a queue that goes on, whenever it was rung for last.

    Bells heard during the pause were not answered, so those rows' bells are taken for lost at once. What is beyond
    one batch is the scheduler's, at its next ticks.
    """
    if queue == Bell.DELIVERIES.queue:
        ring_after_commit(session, Bell.DELIVERIES, [queue])
    for source in SOURCES:
        if source.bell.queue == queue:
            _forget_bells(session, source)
            ring_after_commit(session, source.bell, _mark_due(session, source))


def _mark_due(session: Session, source: Source) -> list[RowId]:
    """Push the ``ring_at`` of a batch of due rows ahead, as somebody does who then rings for them."""
    table = source.table
    due = (
        select(table.id)
        .where(table.due_at <= func.now(), table.ring_at <= func.now())
        .order_by(table.ring_at)
        .limit(BATCH)
        .with_for_update(skip_locked=True)
    )
    ahead = func.clock_timestamp() + timedelta(seconds=source.ring_again_seconds)
    marked = update(table).where(table.id.in_(due.scalar_subquery())).values(ring_at=ahead).returning(table.id)
    return list(session.scalars(marked.execution_options(synchronize_session=False)))


def _forget_bells(session: Session, source: Source) -> None:
    # Somebody is at work on a locked row: it is not touched.
    table = source.table
    rung = select(table.id).where(table.due_at <= func.now(), table.ring_at > func.now())
    locked = rung.with_for_update(skip_locked=True).scalar_subquery()
    forget = update(table).where(table.id.in_(locked)).values(ring_at=func.now())
    session.execute(forget.execution_options(synchronize_session=False))
