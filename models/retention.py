"""How long webhook deliveries are kept, and how they go.

The one rule kept here: what goes is finished, and everything about it is older than what is kept; what is pending
stays, however old. The audit log, which names deliveries by their ids, is never purged.
"""

from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.orm import Session


@dataclass(frozen=True)
class Purged:
    """How many rows went."""

    deliveries: int
    attempts: int


def purge_deliveries(session: Session, days: int, most: int) -> Purged:
    """Delete at most so many deliveries that were finished more than ``days`` ago, the oldest first.

    Their attempts go with them. Those that somebody is just queueing again, or that another one is purging, are left.
    """
    old = list(session.scalars(OLD, {"days": days, "most": most}))
    if not old:
        return Purged(0, 0)
    attempts = session.execute(_ATTEMPTS, {"ids": old})
    deliveries = session.execute(_DELIVERIES, {"ids": old})
    return Purged(deliveries.rowcount, attempts.rowcount)  # type: ignore[attr-defined]


# ix_deliveries_finished_at holds the finished ones in this order, so a batch is read from where the last one ended.
OLD = text("""
    SELECT d.id FROM deliveries d
    WHERE d.finished_at < now() - make_interval(days => :days)
        AND d.due_at IS NULL
        AND NOT EXISTS (
            SELECT FROM delivery_attempts a
            WHERE a.delivery_id = d.id AND a.started_at >= now() - make_interval(days => :days)
        )
    ORDER BY d.finished_at
    LIMIT :most
    FOR UPDATE OF d SKIP LOCKED
""")
_ATTEMPTS = text("DELETE FROM delivery_attempts WHERE delivery_id = ANY(:ids)")
_DELIVERIES = text("DELETE FROM deliveries WHERE id = ANY(:ids)")
