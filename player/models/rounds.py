"""Rounds as this operator knows them: what the coordinator said last, and how far our own work has come.

The one rule kept here: our own work is a ``stage`` that only moves forward (the database refuses the other way);
tickets are sold in ``selling`` only, and whoever leaves it waits for those that are being sold.
"""

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import CheckConstraint, Index, LargeBinary, func, select, text
from sqlalchemy.orm import Mapped, Session, mapped_column

from player.models.base import Base, Created, Due, Instant, Micro


class Stage(StrEnum):
    """How far we are with a round, in order. ``done`` and ``failed`` are the ends."""

    SELLING = "selling"
    CLOSED = "closed"
    """Sales are over; the last tickets are on their way, then the manifest."""
    BOUND = "bound"
    """The manifest was accepted; the nonce is ours until the round is sealed."""
    REVEALED = "revealed"
    """The nonce was revealed; the draw is next. Inclusion proofs are kept."""
    CHECKED = "checked"
    """Drawn: tickets are won or lost, prizes are on record."""
    PAYABLE = "payable"
    """Settled: the money for the prizes is there and they can be claimed."""
    DONE = "done"
    FAILED = "failed"
    """The round failed, or we were excluded from it: every ticket was refunded."""


class Round(Due, Base):
    """One round we were invited to. Times are the coordinator's, except ``sales_close_at``, which is ours."""

    __tablename__ = "rounds"
    __table_args__ = (
        CheckConstraint(
            "stage IN ('selling', 'closed', 'bound', 'revealed', 'checked', 'payable', 'done', 'failed')", name="stage"
        ),
        Index("ix_rounds_due", "due_at", postgresql_where=text("due_at IS NOT NULL")),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    stage: Mapped[str] = mapped_column(server_default="selling")
    state: Mapped[str]
    ticket_price: Mapped[Micro]
    odds_range: Mapped[int]
    seal_at: Mapped[Instant]
    sales_close_at: Mapped[Instant]
    scheduled_draw_time: Mapped[Instant]
    failure_reason: Mapped[str | None]
    nonce: Mapped[bytes] = mapped_column(LargeBinary)
    manifest: Mapped[str | None]
    tickets_root: Mapped[str | None]
    ticket_count: Mapped[int | None]
    draw: Mapped[dict[str, Any] | None]
    """The coordinator's public Draw (interface section 2.3), once drawn."""
    claim_deadline: Mapped[datetime | None]
    last_error: Mapped[str | None]
    attempts: Mapped[int] = mapped_column(server_default="0")
    created_at: Mapped[Created]
    ended_at: Mapped[datetime | None]


def on_sale(session: Session) -> Round | None:
    """The round that tickets are sold for now: of those on sale the first whose sales close; None: there is none."""
    open_now = select(Round).where(Round.stage == Stage.SELLING, Round.sales_close_at > func.clock_timestamp())
    return session.scalars(open_now.order_by(Round.sales_close_at, Round.id).limit(1)).first()
