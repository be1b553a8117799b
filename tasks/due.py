"""Finding rows that are due and ringing for them: what the scheduler does at every tick.

The one rule kept here: whoever rings for a row first pushes its ``ring_at`` ahead and commits, so any number of
schedulers ring once, and a bell that gets lost is rung again when that time is over.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from sqlalchemy import func, select, update

from models.deliveries import Delivery
from models.operators import Operator
from models.rounds import Round, RoundSchedule
from models.session import transaction
from models.work import Piece
from tasks.bell import Bell, RowId, ring

DueTable = type[Round] | type[Piece] | type[Delivery] | type[Operator] | type[RoundSchedule]


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
    Source(Delivery, Bell.DELIVERY, 5.0),
)
BATCH: Final = 500
"""Rows of one table rung for in one tick at the most."""


def ring_due() -> int:
    """Ring for every due row of every table; returns how many bells were rung."""
    return sum(_ring_due_of(source) for source in SOURCES)


def _ring_due_of(source: Source) -> int:
    now = func.clock_timestamp()
    table = source.table
    due = (
        select(table.id)
        .where(table.due_at <= func.now(), table.ring_at <= func.now())
        .order_by(table.ring_at)
        .limit(BATCH)
        .with_for_update(skip_locked=True)
    )
    with transaction() as session:
        marked = (
            update(table)
            .where(table.id.in_(due.scalar_subquery()))
            .values(ring_at=now + timedelta(seconds=source.ring_again_seconds))
            .returning(table.id)
            .execution_options(synchronize_session=False)
        )
        ids: list[RowId] = list(session.scalars(marked))
    return sum(ring(source.bell, row_id) for row_id in ids)
