"""Figures of all webhooks together: what waits and what holds it back, how endpoints do, what re-queues have left.

The one rule kept here: a figure is one statement that an index answers. A monitor asks four times a minute, and most
urgently when there is most to count.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import text
from sqlalchemy.orm import Session

from models.endpoints import BREAKER_FAILURES


class Deferral(StrEnum):
    """Why something that is due is not begun: somebody paused its queue or endpoint, or the endpoint's breaker is
    open (or half open, when one delivery at a time may probe).
    """

    PAUSED = "paused"
    BREAKER = "breaker"


class EndpointState(StrEnum):
    """How an endpoint is doing. The first that applies of ``paused``, ``open`` (its breaker opened and no attempt
    has succeeded since), ``failing`` (its last attempt failed) and ``healthy``.
    """

    HEALTHY = "healthy"
    FAILING = "failing"
    OPEN = "open"
    PAUSED = "paused"


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
    """What waits now, whatever holds it back."""
    row = session.execute(_WAITING, {"threshold": BREAKER_FAILURES}).one()
    deferred = {Deferral.PAUSED: row.paused, Deferral.BREAKER: row.breaker}
    return Waiting(row.number, row.oldest_seconds, deferred, row.in_flight)


# Who leases a delivery moves its due_at to the end of the lease: what is due now is nobody's.
_WAITING = text("""
    WITH due AS (
        SELECT operator_id, count(*) AS number, min(due_at) AS oldest
        FROM deliveries WHERE due_at <= now() GROUP BY operator_id
    )
    SELECT
        CAST(coalesce(sum(number), 0) AS bigint) AS number,
        CAST(extract(epoch FROM now() - min(oldest)) AS float) AS oldest_seconds,
        CAST(coalesce(sum(number) FILTER (WHERE paused_at IS NOT NULL), 0) AS bigint) AS paused,
        CAST(
            coalesce(sum(number) FILTER (WHERE paused_at IS NULL AND failures >= :threshold), 0) AS bigint
        ) AS breaker,
        (SELECT count(*) FROM deliveries WHERE lease_ends_at > now()) AS in_flight
    FROM due JOIN webhook_endpoints USING (operator_id)
""")


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
