"""What a monitor is told of webhooks: what came of the attempts, how long they took, how the endpoints do.

The one rule kept here: what happened is a counter that only grows, read from the tallies, so that it outlives the rows
it was counted from; how things stand is a gauge, read from the rows themselves.
"""

from collections.abc import Iterator

from prometheus_client.core import Metric
from sqlalchemy.orm import Session

from app.families import counters, gauge, gauges, histogram
from models.leases import oldest_ready_seconds
from models.tallies import BUCKETS_SECONDS, Kind, tallies
from models.webhook_figures import endpoints_by_state, failed, open_requeues
from protocol.retry import ERROR_CLASSES

OUTCOMES = ("delivered", *ERROR_CLASSES, "ours")


def webhook_metrics(session: Session) -> Iterator[Metric]:
    """Everything about webhooks but their queue."""
    yield from _happened(session)
    yield gauge(
        "webhook_oldest_ready_seconds",
        "For how long the delivery that would be sent next could have been; 0 if none would be. What is held back, or "
        "is to an endpoint that has all it may have at once, does not count.",
        oldest_ready_seconds(session),
    )
    by_state = {state.value: count for state, count in endpoints_by_state(session).items()}
    yield gauges(
        "webhook_endpoints",
        "Registered webhook addresses: healthy, failing (the last attempt failed), open (the breaker has opened and no "
        "attempt has succeeded since) and paused.",
        by_state,
        "state",
    )
    yield gauge(
        "deliveries_failed",
        "Webhook deliveries that have failed and wait for somebody; of many an estimate.",
        failed(session),
    )
    jobs, remaining = open_requeues(session)
    yield gauge("requeue_jobs", "Bulk re-queues that are not done.", jobs)
    yield gauge("requeue_remaining_deliveries", "Deliveries that those have still to queue again.", remaining)


def _happened(session: Session) -> Iterator[Metric]:
    counted = tallies(session)
    outcomes = counted[Kind.OUTCOME]
    yield counters(
        "webhook_attempts",
        "Attempts by what came of them: delivered, an error class, or ours (put off for a fault of the coordinator; "
        "not an attempt to the operator).",
        {outcome: outcomes.get(outcome, 0) for outcome in OUTCOMES},
        "outcome",
    )
    given_up = counted[Kind.GIVEN_UP]
    yield counters(
        "webhook_given_up",
        "Deliveries that failed with their last attempt, by its error class.",
        {error: given_up.get(error, 0) for error in ERROR_CLASSES},
        "outcome",
    )
    yield histogram(
        "webhook_attempt_seconds",
        "How long attempts took that reached a receiver.",
        BUCKETS_SECONDS,
        counted[Kind.SECONDS],
        _seconds(counted[Kind.SECONDS_SUM]),
    )
    yield histogram(
        "webhook_wait_seconds",
        "How long after the commit first attempts began.",
        BUCKETS_SECONDS,
        counted[Kind.WAIT],
        _seconds(counted[Kind.WAIT_SUM]),
    )
    connections = counted[Kind.CONNECTION]
    yield counters(
        "webhook_connections",
        "Attempts over a connection made for them, or used again.",
        {kind: connections.get(kind, 0) for kind in ("new", "reused")},
        "kind",
    )


def _seconds(microseconds: dict[str, int]) -> float:
    return sum(microseconds.values()) / 1_000_000
