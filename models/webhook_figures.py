"""Figures of all webhooks together: what waits and what holds it back, how endpoints do, what re-queues have left.

The one rule kept here: a figure is one statement that an index answers. A monitor asks four times a minute, and most
urgently when there is most to count.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import text
from sqlalchemy.orm import Session

from models.counting import count_quickly
from models.deliveries import Priority
from models.endpoint_search import EndpointState
from models.endpoints import BREAKER_FAILURES


class Deferral(StrEnum):
    """Why something that is due is not begun: somebody paused its queue or endpoint, or the endpoint's breaker is
    open (or half open, when one delivery at a time may probe).
    """

    PAUSED = "paused"
    BREAKER = "breaker"


@dataclass(frozen=True)
class Waiting:
    """Deliveries that are due and nobody is at, for how long the oldest has been (seconds; None without any), those of
    them that their endpoints' state holds back, and deliveries somebody is at.
    """

    number: int
    oldest_seconds: float | None
    deferred: Mapping[Deferral, int]
    in_flight: int


def waiting(session: Session) -> Waiting:
    """What waits now, whatever holds it back. Numbers above ``EXACT_UP_TO`` are estimates."""
    held_back: dict[Deferral, list[str]] = {reason: [] for reason in Deferral}
    for operator_id, paused in session.execute(_HELD_BACK, {"threshold": BREAKER_FAILURES}):
        held_back[Deferral.PAUSED if paused else Deferral.BREAKER].append(operator_id)
    deferred = {
        reason: count_quickly(session, f"{_DUE} AND operator_id = ANY (CAST(:held_back AS text[]))", {"held_back": ids})
        for reason, ids in held_back.items()
    }
    row = session.execute(_OLDEST).one()
    return Waiting(count_quickly(session, _DUE), row.seconds, deferred, row.in_flight)


# Who leases a delivery moves its due_at to the end of the lease: what is due now is nobody's.
_DUE = "SELECT FROM deliveries WHERE due_at <= now()"
_HELD_BACK = text("""
    SELECT operator_id, paused_at IS NOT NULL AS paused
    FROM webhook_endpoints WHERE paused_at IS NOT NULL OR failures >= :threshold
""")
# The index has them by operator and priority: of each, the first is the oldest.
_OLDEST = text(f"""
    SELECT
        CAST(extract(epoch FROM now() - min(first.due_at)) AS float) AS seconds,
        (SELECT count(*) FROM deliveries WHERE lease_ends_at > now()) AS in_flight
    FROM webhook_endpoints e
    CROSS JOIN unnest(ARRAY[{", ".join(str(priority.value) for priority in Priority)}]) AS priority
    CROSS JOIN LATERAL (
        SELECT d.due_at FROM deliveries d
        WHERE d.operator_id = e.operator_id AND d.priority = priority.priority AND d.due_at <= now()
        ORDER BY d.due_at LIMIT 1
    ) AS first
""")  # noqa: S608


def failed(session: Session) -> int:
    """How many deliveries are failed now. A number above ``EXACT_UP_TO`` is an estimate."""
    return count_quickly(session, "SELECT FROM deliveries WHERE status = 'failed'")


def endpoints_by_state(session: Session) -> dict[EndpointState, int]:
    """How many registered webhook addresses are in each state."""
    row = session.execute(_ENDPOINTS, {"threshold": BREAKER_FAILURES}).one()
    return {state: getattr(row, state.value) for state in EndpointState}


_ENDPOINTS = text("""
    SELECT
        count(*) FILTER (WHERE paused_at IS NOT NULL) AS paused,
        count(*) FILTER (WHERE paused_at IS NULL AND failures >= :threshold) AS open,
        count(*) FILTER (WHERE paused_at IS NULL AND failures BETWEEN 1 AND :threshold - 1) AS failing,
        count(*) FILTER (WHERE paused_at IS NULL AND failures = 0) AS healthy
    FROM webhook_endpoints e JOIN operators o ON o.id = e.operator_id
    WHERE o.webhook_url IS NOT NULL
""")


def open_requeues(session: Session) -> tuple[int, int]:
    """``(bulk re-queues that are not done, deliveries they have still to queue again)``."""
    row = session.execute(_REQUEUES).one()
    return row.jobs, row.remaining


_REQUEUES = text("""
    SELECT count(*) AS jobs, CAST(coalesce(sum(greatest(0, matched - requeued)), 0) AS bigint) AS remaining
    FROM requeue_jobs WHERE due_at IS NOT NULL
""")
