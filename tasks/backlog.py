"""How much work waits in each queue, counted from the rows that are the work.

The one rule kept here: counting disturbs nobody. It takes no lock and asks Redis nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    Double,
    Label,
    Select,
    String,
    and_,
    func,
    literal,
    literal_column,
    not_,
    select,
    union_all,
)
from sqlalchemy.orm import Session

from models.webhook_figures import Deferral, waiting
from tasks.bell import QUEUES, Bell
from tasks.due import SOURCES, DueTable, Source


@dataclass(frozen=True)
class Backlog:
    """Rows that are due and nobody is at, for how long the oldest has been (seconds), and rows somebody is at.

    Webhooks are counted to ``EXACT_UP_TO``; above, the numbers are estimates.

    ``deferred``: how many of the waiting their endpoints hold back. ``unrung_seconds``: for how long one of them could
    have been rung for and was not; of webhooks nothing, since they share a bell.
    """

    depth: int = 0
    oldest_due_seconds: float | None = None
    in_flight: int = 0
    deferred: Mapping[Deferral, int] = field(default_factory=dict)
    unrung_seconds: float = 0.0


def backlogs(session: Session) -> dict[str, Backlog]:
    """The backlog of every queue, by name."""
    found = {queue: Backlog() for queue in QUEUES}
    for queue, depth, oldest, in_flight, unrung in session.execute(_COUNT):
        found[queue] = Backlog(depth, oldest, in_flight, unrung_seconds=unrung or 0.0)
    webhooks, beside = waiting(session), found[Bell.DELIVERIES.queue]
    ages = [age for age in (webhooks.oldest_seconds, beside.oldest_due_seconds) if age is not None]
    found[Bell.DELIVERIES.queue] = Backlog(
        depth=webhooks.number + beside.depth,
        oldest_due_seconds=max(ages, default=None),
        in_flight=webhooks.in_flight + beside.in_flight,
        deferred=webhooks.deferred,
        unrung_seconds=beside.unrung_seconds,
    )
    return found


def _one(source: Source) -> Select[str, int, float | None, int, float | None]:
    table, taken = source.table, _locked(source.table)
    waits = and_(table.due_at <= func.now(), not_(taken))
    # A bell is late from when the row was due and its last bell, if any, was taken for lost.
    since = func.greatest(table.due_at, table.ring_at)
    return select(
        literal(source.bell.queue, String).label("queue"),
        func.count().filter(waits).label("depth"),
        _age(func.min(table.due_at).filter(waits), "oldest"),
        func.count().filter(taken).label("in_flight"),
        _age(func.min(since).filter(and_(waits, table.ring_at <= func.now())), "unrung"),
    ).where(table.due_at.is_not(None))


def _age(moment: ColumnElement[Any], name: str) -> Label[float | None]:
    return func.extract("epoch", func.now() - moment).cast(Double).label(name)


def _locked(table: DueTable) -> ColumnElement[bool]:
    # Such rows are held by their locks. PostgreSQL notes who locked a row in the row itself (xmax), and which
    # transactions are running where everybody can read it: so the lock is seen without trying it.
    locker = f"{table.__tablename__}.xmax"
    running = "(SELECT backend_xid FROM pg_stat_activity WHERE backend_xid IS NOT NULL)"
    return literal_column(f"{locker} IN {running}", Boolean)


_every = union_all(*map(_one, SOURCES)).subquery()
# One statement, however many tables there are.
_COUNT = select(
    _every.c.queue,
    func.sum(_every.c.depth).cast(BigInteger),
    func.max(_every.c.oldest),
    func.sum(_every.c.in_flight).cast(BigInteger),
    func.max(_every.c.unrung),
).group_by(_every.c.queue)
