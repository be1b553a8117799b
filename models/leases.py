"""Leases: taking due deliveries for one attempt each, and writing what came of it.

The one rule kept here: a delivery is taken for longer than an attempt can last, and a result is written only under the
fencing number of the claim it belongs to. Whoever was too slow changes nothing, and what nobody concludes is due again
when the lease ends.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import LargeBinary, text
from sqlalchemy.orm import Session

from models.deliveries import DeliveryStatus, Priority
from models.endpoints import BREAKER_FAILURES
from models.settings import settings

QUEUE = "deliveries"
SLOW_CAP = 2
"""At most so many at once to an endpoint that failed lately, or of retries and what was queued again to any."""


class Lane(StrEnum):
    """Two lanes, so that what may take long is never in the way of what should not.

    ``FAST``: first attempts at endpoints whose last attempt succeeded. ``SLOW``: everything else.
    """

    FAST = "fast"
    SLOW = "slow"


@dataclass(frozen=True)
class Leased:
    """A delivery taken for one attempt, with all that is needed to make it. ``number`` is the attempt's, from 1.

    ``url`` and ``encrypted_key`` are the operator's at this moment: whoever changed either gets the rest of the
    attempts to the new address, signed with the new key. ``waited`` is how long it has been in the house, seconds.
    """

    id: UUID
    operator_id: str
    event: str
    body: bytes
    fence: int
    number: int
    attempts_before: int
    priority: int
    url: str | None
    encrypted_key: bytes | None
    taken_at: datetime
    waited: float


@dataclass(frozen=True)
class Concluded:
    """What an attempt at a delivery came to. ``retry_in_seconds`` is None when there is no further attempt."""

    leased: Leased
    status: DeliveryStatus
    retry_in_seconds: float | None
    duration_ms: int
    url: str
    status_code: int | None
    error_class: str | None
    response_body: str | None
    phases_ms: dict[str, float] | None
    peer: str | None
    reused: bool
    detail: str | None


def lease_some(session: Session, lane: Lane, most: int, seconds: float) -> list[Leased]:
    """Take at most so many due deliveries of a lane, the longest due first, for ``seconds`` each.

    No more at once to one endpoint than it may have, none to one that is paused or whose breaker is open, and none at
    all while the queue is paused. Endpoints that somebody else is just taking from are left to them.
    """
    limits = _limits() | {"most": most}
    operators = list(session.scalars(_LOCK[lane], limits))
    if not operators:
        return []
    # A statement of its own: it must see what those did who held the endpoints before us.
    rows = session.execute(_TAKE[lane], limits | {"operators": operators, "seconds": seconds})
    return [Leased(**row) for row in rows.mappings()]


def anything_to_lease(session: Session) -> bool:
    """Whether anybody who looked now would get something."""
    return any(session.scalars(_ANY[lane], _limits()).first() is not None for lane in Lane)


def oldest_ready_seconds(session: Session) -> float:
    """For how long the longest waiting of those that would be taken next could have been; 0.0 when none would be.

    What is held back, or is to an endpoint that has all it may have at once, waits for somebody else and not for us:
    behind a breaker, time counts from when the next probe may be made.
    """
    return max(session.scalars(_OLDEST_READY, _limits()).one() or 0.0, 0.0)


def _limits() -> dict[str, Any]:
    return {
        "queue": QUEUE,
        "fast_cap": settings().webhook_endpoint_concurrency,
        "slow_cap": SLOW_CAP,
        "threshold": BREAKER_FAILURES,
    }


# Conditions ask for now(), not for the clock: PostgreSQL looks nothing up in an index by what changes meanwhile.
_IN_FLIGHT = """(
    SELECT count(*) FROM deliveries d
    WHERE d.operator_id = e.operator_id AND d.lease_ends_at > now()
)"""
# What an endpoint may have at once, and which of its deliveries are of the lane.
_CAP = {
    Lane.FAST: ":fast_cap",
    Lane.SLOW: "CASE WHEN e.failures >= :threshold THEN 1 ELSE :slow_cap END",
}
_OF_LANE = {
    Lane.FAST: f"e.failures = 0 AND d.priority = {Priority.FIRST_ATTEMPT.value}",
    # Of an endpoint that failed lately everything; of the others what is not a first attempt.
    Lane.SLOW: "d.priority >= CASE WHEN e.failures > 0 THEN 0 ELSE 1 END",
}
_OPEN = """
    e.paused_at IS NULL AND (e.open_until IS NULL OR e.open_until <= now())
    AND NOT EXISTS (SELECT FROM queue_pauses WHERE queue = :queue)
    AND EXISTS (SELECT FROM deliveries WHERE due_at IS NOT NULL) -- asked once, and mostly there is nothing
"""


def _ready(lane: Lane) -> str:
    """Endpoints from which something of a lane can be taken now, the longest waiting first."""
    return f"""
        SELECT e.operator_id, greatest(next.due_at, e.open_until) AS ready_since
        FROM webhook_endpoints e
        CROSS JOIN LATERAL (
            SELECT d.due_at FROM deliveries d
            WHERE d.operator_id = e.operator_id AND d.due_at <= now() AND {_OF_LANE[lane]}
            ORDER BY d.priority, d.due_at LIMIT 1
        ) next
        WHERE {_OPEN} AND {_IN_FLIGHT} < {_CAP[lane]}
    """  # noqa: S608 - our own words


_LOCK = {
    lane: text(f"{_ready(lane)} ORDER BY next.due_at LIMIT :most FOR NO KEY UPDATE OF e SKIP LOCKED") for lane in Lane
}
_ANY = {lane: text(f"{_ready(lane)} LIMIT 1") for lane in Lane}
_OLDEST_READY = text(
    "SELECT CAST(extract(epoch FROM now() - min(ready_since)) AS float) FROM ("  # noqa: S608
    + " UNION ALL ".join(f"({_ready(lane)})" for lane in Lane)
    + ") AS ready"
)
_TAKE = {
    lane: text(f"""
    WITH taken AS (
        SELECT next.id, next.due_at
        FROM unnest(CAST(:operators AS text[])) WITH ORDINALITY AS chosen(operator_id, place)
        JOIN webhook_endpoints e USING (operator_id)
        CROSS JOIN LATERAL (
            SELECT d.id, d.due_at FROM deliveries d
            WHERE d.operator_id = e.operator_id AND d.due_at <= now() AND {_OF_LANE[lane]}
            ORDER BY d.priority, d.due_at
            LIMIT greatest(0, {_CAP[lane]} - {_IN_FLIGHT})
            FOR UPDATE SKIP LOCKED
        ) next
        WHERE {_OPEN}
        ORDER BY chosen.place
        LIMIT :most
    )
    UPDATE deliveries d
    SET due_at = clock_timestamp() + make_interval(secs => :seconds),
        lease_ends_at = clock_timestamp() + make_interval(secs => :seconds),
        fence = d.fence + 1
    FROM taken, operators o
    LEFT JOIN LATERAL (
        SELECT encrypted FROM operator_api_keys k WHERE k.operator_id = o.id ORDER BY k.created_at DESC LIMIT 1
    ) newest ON true
    WHERE d.id = taken.id AND o.id = d.operator_id
    RETURNING d.id, d.operator_id, d.event, d.body, d.fence, d.attempts + 1 AS number, d.attempts_before, d.priority,
        o.webhook_url AS url, newest.encrypted AS encrypted_key, clock_timestamp() AS taken_at,
        CAST(extract(epoch FROM clock_timestamp() - d.created_at) AS float) AS waited
    """).columns(body=LargeBinary, encrypted_key=LargeBinary)  # noqa: S608
    for lane in Lane
}


def conclude_some(session: Session, results: Sequence[Concluded]) -> set[UUID]:
    """Write what attempts came to; returns the ids of those whose lease still held. The others change nothing."""
    if not results:
        return set()
    found = json.dumps([_plain(result) for result in results])
    return set(session.scalars(_CONCLUDE, {"results": found, "retry": Priority.RETRY.value}))


def _plain(result: Concluded) -> dict[str, Any]:
    return {
        "id": str(result.leased.id),
        "fence": result.leased.fence,
        "number": result.leased.number,
        "started_at": result.leased.taken_at.isoformat(),
        "status": result.status.value,
        "retry_in": result.retry_in_seconds,
        "duration_ms": result.duration_ms,
        "url": result.url,
        "status_code": result.status_code,
        "error_class": result.error_class,
        "response_body": result.response_body,
        "phases_ms": result.phases_ms,
        "peer": result.peer,
        "reused": result.reused,
        "detail": result.detail,
    }


_CONCLUDE = text("""
    WITH result AS (
        SELECT *, clock_timestamp() AS now FROM jsonb_to_recordset(CAST(:results AS jsonb)) AS result (
            id uuid, fence bigint, number smallint, started_at timestamptz, status text, retry_in double precision,
            duration_ms bigint, url text, status_code smallint, error_class text, response_body text,
            phases_ms jsonb, peer text, reused boolean, detail text
        )
    ), concluded AS (
        UPDATE deliveries d
        SET status = r.status,
            attempts = r.number,
            priority = CASE WHEN r.retry_in IS NULL THEN d.priority ELSE greatest(d.priority, :retry) END,
            due_at = r.now + make_interval(secs => r.retry_in),
            lease_ends_at = NULL,
            finished_at = CASE WHEN r.retry_in IS NULL THEN r.now END,
            error_class = r.error_class
        FROM result r
        WHERE d.id = r.id AND d.fence = r.fence AND d.lease_ends_at IS NOT NULL
        RETURNING d.id
    ), logged AS (
        INSERT INTO delivery_attempts (
            delivery_id, number, started_at, duration_ms, url, status_code, error_class, response_body,
            phases_ms, peer, reused, detail
        )
        SELECT r.id, r.number, r.started_at, r.duration_ms, r.url, r.status_code, r.error_class, r.response_body,
            r.phases_ms, r.peer, r.reused, r.detail
        FROM result r JOIN concluded USING (id)
    )
    SELECT id FROM concluded
""")


def release_some(session: Session, leased: Iterable[Leased], due_in_seconds: float) -> int:
    """Give deliveries back without an attempt: nothing of it was their receivers' doing. They are due again then."""
    given_back = list(leased)
    return len(
        session.execute(
            _RELEASE,
            {
                "ids": [each.id for each in given_back],
                "fences": [each.fence for each in given_back],
                "seconds": due_in_seconds,
            },
        ).all()
    )


_RELEASE = text("""
    UPDATE deliveries d
    SET due_at = clock_timestamp() + make_interval(secs => :seconds), lease_ends_at = NULL
    FROM unnest(CAST(:ids AS uuid[]), CAST(:fences AS bigint[])) AS given_back(id, fence)
    WHERE d.id = given_back.id AND d.fence = given_back.fence AND d.lease_ends_at IS NOT NULL
    RETURNING d.id
""")
