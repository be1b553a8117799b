"""How much work waits in each queue, counted from the rows that are the work.

The one rule kept here: counting disturbs nobody. It takes no lock and asks Redis nothing.
"""

from dataclasses import dataclass

from sqlalchemy import Boolean, ColumnElement, Double, Select, and_, false, func, literal_column, not_, select
from sqlalchemy.orm import Session

from models.deliveries import Delivery
from tasks.bell import QUEUES, Bell
from tasks.due import SOURCES, DueTable


@dataclass(frozen=True)
class Backlog:
    """Rows that are due and nobody is at, for how long the oldest has been (seconds), and rows somebody is at."""

    depth: int = 0
    oldest_due_seconds: float | None = None
    in_flight: int = 0


def backlogs(session: Session) -> dict[str, Backlog]:
    """The backlog of every queue, by name."""
    found = {queue: Backlog() for queue in QUEUES}
    for bell, count in (
        *((source.bell, _count(source.table, _locked(source.table))) for source in SOURCES),
        (Bell.DELIVERIES, _count(Delivery, func.coalesce(Delivery.lease_ends_at > func.now(), false()))),
    ):
        depth, oldest, in_flight = session.execute(count).one()
        known = found[bell.queue]
        ages = [age for age in (known.oldest_due_seconds, oldest) if age is not None]
        found[bell.queue] = Backlog(known.depth + depth, max(ages, default=None), known.in_flight + in_flight)
    return found


def _count(table: DueTable | type[Delivery], taken: ColumnElement[bool]) -> Select[int, float | None, int]:
    waits = and_(table.due_at <= func.now(), not_(taken))
    age = func.extract("epoch", func.now() - func.min(table.due_at).filter(waits)).cast(Double)
    return select(func.count().filter(waits), age, func.count().filter(taken)).where(table.due_at.is_not(None))


def _locked(table: DueTable) -> ColumnElement[bool]:
    # Such rows are held by their locks. PostgreSQL notes who locked a row in the row itself (xmax), and which
    # transactions are running where everybody can read it: so the lock is seen without trying it.
    locker = f"{table.__tablename__}.xmax"
    running = "(SELECT backend_xid FROM pg_stat_activity WHERE backend_xid IS NOT NULL)"
    return literal_column(f"{locker} IN {running}", Boolean)
