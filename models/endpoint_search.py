"""Finding webhook endpoints: how each is doing, and what waits for it.

The one rule kept here: what waits is counted for the endpoints on the page only, so that a page costs the same however
many operators there are.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import text
from sqlalchemy.orm import Session

from models.endpoints import BREAKER_FAILURES
from protocol.errors import NotFound
from protocol.identifiers import is_identifier


class EndpointState(StrEnum):
    """How an endpoint is doing.

    ``failing``: its last attempts failed, and the next is made all the same. ``open``: so many failed that we hold back
    (the breaker is open), but for one delivery now and then, until one succeeds. ``paused``: somebody holds it up.
    """

    HEALTHY = "healthy"
    FAILING = "failing"
    OPEN = "open"
    PAUSED = "paused"


@dataclass(frozen=True)
class EndpointView:
    """An endpoint. ``waiting``: deliveries whose time has come and that nobody is at; ``oldest_due_seconds``: for how
    long the oldest of them has been due; ``in_flight``: deliveries being sent."""

    operator_id: str
    url: str | None
    state: str
    failures: int
    open_until: datetime | None
    paused_at: datetime | None
    paused_by: str | None
    pause_reason: str | None
    waiting: int
    oldest_due_seconds: float | None
    in_flight: int


def endpoints(
    session: Session, state: EndpointState | None, limit: int, after: str | None = None
) -> list[EndpointView]:
    """So many endpoints, in the byte order of their operators' ids, from behind ``after`` on."""
    asked = {"state": state.value if state else None, "after": after or "", "only": None, "limit": limit}
    asked |= {"threshold": BREAKER_FAILURES}
    return [EndpointView(**row) for row in session.execute(_PAGE, asked).mappings()]


def endpoint_of(session: Session, operator_id: str) -> EndpointView:
    """One operator's endpoint.

    :raises NotFound: no such operator.
    """
    asked: dict[str, Any] = {"state": None, "after": "", "only": operator_id, "limit": 1}
    asked |= {"threshold": BREAKER_FAILURES}
    found = session.execute(_PAGE, asked).mappings().first() if is_identifier(operator_id) else None
    if found is None:
        raise NotFound("no such operator")
    return EndpointView(**found)


_PAGE = text("""
    WITH page AS (
        SELECT e.*, o.webhook_url AS url, state.is AS state
        FROM webhook_endpoints e
        JOIN operators o ON o.id = e.operator_id
        CROSS JOIN LATERAL (
            SELECT CASE
                WHEN e.paused_at IS NOT NULL THEN 'paused'
                WHEN e.failures >= :threshold THEN 'open'
                WHEN e.failures > 0 THEN 'failing'
                ELSE 'healthy'
            END AS is
        ) state
        WHERE e.operator_id > :after
            AND (CAST(:only AS text) IS NULL OR e.operator_id = :only)
            AND (CAST(:state AS text) IS NULL OR state.is = :state)
        ORDER BY e.operator_id
        LIMIT :limit
    )
    SELECT page.operator_id, page.url, page.state, page.failures,
        CASE WHEN page.open_until > now() THEN page.open_until END AS open_until,
        page.paused_at, page.paused_by, page.pause_reason,
        work.waiting, work.oldest_due_seconds, work.in_flight
    FROM page
    CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE waits) AS waiting,
            CAST(extract(epoch FROM now() - min(due_at) FILTER (WHERE waits)) AS float) AS oldest_due_seconds,
            count(*) FILTER (WHERE leased) AS in_flight
        FROM (
            SELECT d.due_at, coalesce(d.lease_ends_at > now(), false) AS leased,
                d.due_at <= now() AND coalesce(d.lease_ends_at <= now(), true) AS waits
            FROM deliveries d
            WHERE d.operator_id = page.operator_id AND d.due_at IS NOT NULL
        ) its
    ) work
    ORDER BY page.operator_id
""")
