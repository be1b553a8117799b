"""Webhook endpoints: how each operator's receiver has been doing, and whether we hold back from it.

The one rule kept here: holding back is a condition of claiming, not a change to what waits. A delivery to an endpoint
whose breaker is open, or that somebody paused, stays due as it is: it loses no attempt and nothing of its age.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import TIMESTAMP, ForeignKey, func, or_, text, update
from sqlalchemy.orm import Mapped, Session, mapped_column

from models.base import Base, Identifier
from models.settings import settings

BREAKER_FAILURES: Final = 5
"""So many failed attempts in a row open the breaker."""


class Endpoint(Base):
    """An operator's webhook receiver. Every operator has one row from the start (a trigger writes it).

    ``failures`` counts the failed attempts since the last that succeeded. With ``BREAKER_FAILURES`` of them the breaker
    is open until ``open_until``; then one delivery at a time may probe.
    """

    __tablename__ = "webhook_endpoints"

    operator_id: Mapped[Identifier] = mapped_column(ForeignKey("operators.id"), primary_key=True)
    failures: Mapped[int] = mapped_column(server_default="0")
    open_until: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    paused_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    paused_by: Mapped[str | None]
    pause_reason: Mapped[str | None]


@dataclass(frozen=True)
class Health:
    """What some attempts in a row say: did any succeed, and how many failed after that (or at all)."""

    recovered: bool
    failures: int


def note_health(session: Session, found: Mapping[str, Health]) -> None:
    """Count failures in a row by operator, and open the breaker where there are too many.

    An endpoint that was healthy and is still is not written to, so that the usual case costs nothing.
    """
    news = {operator_id: health for operator_id, health in found.items() if health.failures or health.recovered}
    if not news:
        return
    session.execute(
        _NOTE,
        {
            "operators": list(news),
            "recovered": [health.recovered for health in news.values()],
            "failures": [health.failures for health in news.values()],
            "threshold": BREAKER_FAILURES,
            "seconds": settings().webhook_breaker_seconds,
        },
    )


# The rows are locked in one order, so that two who note at once wait for each other and never both.
_NOTE = text("""
    WITH news AS (
        SELECT * FROM unnest(CAST(:operators AS text[]), CAST(:recovered AS boolean[]), CAST(:failures AS bigint[]))
            AS news(operator_id, recovered, failures)
    ), now_is AS (
        SELECT e.operator_id, CASE WHEN n.recovered THEN 0 ELSE e.failures END + n.failures AS failures
        FROM webhook_endpoints e JOIN news n USING (operator_id)
        WHERE n.failures > 0 OR e.failures > 0
        ORDER BY e.operator_id
        FOR NO KEY UPDATE OF e
    )
    UPDATE webhook_endpoints e
    SET failures = now_is.failures,
        open_until = CASE
            WHEN now_is.failures >= :threshold THEN clock_timestamp() + make_interval(secs => :seconds)
        END
    FROM now_is WHERE e.operator_id = now_is.operator_id
""")


def forget_failures(session: Session, operator_id: str) -> None:
    """Start anew with an endpoint: its operator has changed something about it."""
    session.execute(update(Endpoint).where(Endpoint.operator_id == operator_id).values(failures=0, open_until=None))


def pause_endpoint(session: Session, operator_id: str, actor: str, reason: str) -> bool:
    """Send this operator nothing from now on; False when it is paused already (by whom and why stays)."""
    paused = (
        update(Endpoint)
        .where(Endpoint.operator_id == operator_id, Endpoint.paused_at.is_(None))
        .values(paused_at=func.clock_timestamp(), paused_by=actor, pause_reason=reason)
        .returning(Endpoint.operator_id)
    )
    return session.scalars(paused).first() is not None


def resume_endpoint(session: Session, operator_id: str) -> bool:
    """Send to this operator again, at once: not paused any more, its breaker closed; False when it is neither."""
    resumed = (
        update(Endpoint)
        .where(
            Endpoint.operator_id == operator_id, or_(Endpoint.paused_at.is_not(None), Endpoint.open_until.is_not(None))
        )
        .values(paused_at=None, paused_by=None, pause_reason=None, failures=0, open_until=None)
        .returning(Endpoint.operator_id)
    )
    return session.scalars(resumed).first() is not None
