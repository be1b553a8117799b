"""Webhook deliveries: the outbox, one row a message, and a row for every attempt.

The one rule kept here: the intent to notify is written in the transaction that changes the state, with the exact
bytes that will be sent; what then happens to it is only ever added to this row and its attempts.
"""

from collections.abc import Collection, Iterable
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import (
    TIMESTAMP,
    ForeignKey,
    Index,
    LargeBinary,
    SmallInteger,
    false,
    func,
    select,
    text,
)
from sqlalchemy.orm import Mapped, Session, mapped_column

from models.base import Base, Created, Identifier, Instant
from models.session import database_now
from protocol.timestamps import format_timestamp
from protocol.webhook import envelope


class DeliveryStatus(StrEnum):
    """``failed`` is after the last attempt; it can be queued again by hand."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


class Priority(IntEnum):
    """What goes first. News is worth most when it is new; what somebody queued again can wait for all else."""

    FIRST_ATTEMPT = 0
    RETRY = 1
    REQUEUED = 2


class Delivery(Base):
    """One message to one operator. ``due_at`` is when its next attempt may begin; NULL once there is none.

    Its attempts are claimed and concluded in ``models.leases``. ``fence`` counts the claims: a result that comes with
    an older number comes from somebody whose lease ran out, and is not written. While somebody is at it,
    ``lease_ends_at`` is set and ``due_at`` is the same moment. ``attempts_before`` were made before it was last queued
    again by hand (``models.requeue``): attempts keep their numbers, and the retry policy counts from there.
    ``requeue_job_id`` is the bulk re-queue that did that, if it was one.
    """

    __tablename__ = "deliveries"
    __table_args__ = (
        Index("ix_deliveries_due", "operator_id", "priority", "due_at", postgresql_where=text("due_at IS NOT NULL")),
        Index("ix_deliveries_leased", "operator_id", postgresql_where=text("lease_ends_at IS NOT NULL")),
        Index("ix_deliveries_finished_at", "finished_at", postgresql_where=text("finished_at IS NOT NULL")),
        Index("ix_deliveries_operator_id_created_at", "operator_id", "created_at"),
        Index("ix_deliveries_round_id", "round_id"),
        Index("ix_deliveries_created_at_id", "created_at", "id"),
        Index("ix_deliveries_failed", "created_at", "id", postgresql_where=text("status = 'failed'")),
        Index(
            "ix_deliveries_failed_of_operator",
            "operator_id",
            "created_at",
            "id",
            postgresql_include=["event", "error_class", "round_id", "finished_at"],
            postgresql_where=text("status = 'failed'"),
        ),
        Index(
            "ix_deliveries_requeue_job_id",
            "requeue_job_id",
            "status",
            postgresql_where=text("requeue_job_id IS NOT NULL"),
        ),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    operator_id: Mapped[Identifier] = mapped_column(ForeignKey("operators.id"))
    round_id: Mapped[int | None] = mapped_column(ForeignKey("rounds.id"))
    event: Mapped[str]
    body: Mapped[bytes] = mapped_column(LargeBinary)
    status: Mapped[str] = mapped_column(server_default=DeliveryStatus.PENDING.value)
    priority: Mapped[int] = mapped_column(SmallInteger, server_default="0")
    due_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    attempts: Mapped[int] = mapped_column(SmallInteger, server_default="0")
    attempts_before: Mapped[int] = mapped_column(SmallInteger, server_default="0")
    lease_ends_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    fence: Mapped[int] = mapped_column(server_default="0")
    created_at: Mapped[Created]
    finished_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    error_class: Mapped[str | None]
    requeue_job_id: Mapped[int | None] = mapped_column(ForeignKey("requeue_jobs.id"))


class DeliveryAttempt(Base):
    """One attempt at a delivery and what came of it. ``error_class`` is NULL when it succeeded.

    ``phases_ms``: milliseconds that asking DNS, connecting, TLS, sending, waiting for the answer and receiving it took,
    as far as it came (``dns`` to ``receive``); nothing of the first three on a connection used again (``reused``).
    ``peer`` is the address that was called. What is kept of the answer, and ``url``, is without secrets.
    """

    __tablename__ = "delivery_attempts"

    delivery_id: Mapped[UUID] = mapped_column(ForeignKey("deliveries.id"), primary_key=True)
    number: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    started_at: Mapped[Instant]
    duration_ms: Mapped[int]
    url: Mapped[str]
    status_code: Mapped[int | None] = mapped_column(SmallInteger)
    error_class: Mapped[str | None]
    response_body: Mapped[str | None]
    phases_ms: Mapped[dict[str, Any] | None]
    peer: Mapped[str | None]
    reused: Mapped[bool] = mapped_column(server_default=false())
    detail: Mapped[str | None]


def announce(
    session: Session, event: str, operator_ids: Iterable[str], round_id: int | None, data: dict[str, Any]
) -> list[UUID]:
    """Write a delivery of one event to each operator; returns the ids.

    Operators without a webhook address get one as well: an address registered within the attempts still hears of it.
    """
    body = envelope(event, round_id, format_timestamp(database_now(session)), data)
    return _write(session, event, operator_ids, round_id, body)


def announce_sample(session: Session, event: str, operator_id: str, round_id: int | None, data: dict[str, Any]) -> UUID:
    """Write a delivery of made-up news to one operator; returns the id. Its round exists in the body only."""
    body = envelope(event, round_id, format_timestamp(database_now(session)), data)
    return _write(session, event, [operator_id], None, body)[0]


def _write(session: Session, event: str, operator_ids: Iterable[str], round_id: int | None, body: bytes) -> list[UUID]:
    receivers = list(operator_ids)
    ids = [uuid4() for _ in receivers]
    if receivers:
        session.execute(
            _WRITE, {"ids": ids, "receivers": receivers, "round_id": round_id, "event": event, "body": body}
        )
    return ids


# One statement of one text, and the body crosses once, however many receivers there are.
_WRITE = text("""
    INSERT INTO deliveries (id, operator_id, round_id, event, body, due_at)
    SELECT receiver.id, receiver.operator_id, :round_id, :event, :body, clock_timestamp()
    FROM unnest(CAST(:ids AS uuid[]), CAST(:receivers AS text[])) AS receiver(id, operator_id)
""")


def in_order(session: Session, delivery_ids: Collection[UUID]) -> list[Delivery]:
    """These deliveries, in the order in which they are named."""
    found = {row.id: row for row in session.scalars(select(Delivery).where(Delivery.id.in_(delivery_ids)))}
    return [found[delivery_id] for delivery_id in delivery_ids]


def recent(session: Session, operator_id: str, limit: int, offset: int) -> list[Delivery]:
    """A page of an operator's deliveries, newest first."""
    return list(
        session.scalars(
            select(Delivery)
            .where(Delivery.operator_id == operator_id)
            .order_by(Delivery.created_at.desc(), Delivery.id)
            .limit(limit)
            .offset(offset)
        )
    )


def attempts_of(session: Session, delivery_ids: Collection[UUID]) -> dict[UUID, list[DeliveryAttempt]]:
    """The attempts at each of these deliveries, first to last."""
    found: dict[UUID, list[DeliveryAttempt]] = {delivery_id: [] for delivery_id in delivery_ids}
    for attempt in session.scalars(
        select(DeliveryAttempt).where(DeliveryAttempt.delivery_id.in_(delivery_ids)).order_by(DeliveryAttempt.number)
    ):
        found[attempt.delivery_id].append(attempt)
    return found


def counts_by_status(session: Session, round_id: int) -> dict[str, int]:
    """How many of a round's deliveries are pending, delivered and failed."""
    rows = session.execute(
        select(Delivery.status, func.count()).where(Delivery.round_id == round_id).group_by(Delivery.status)
    )
    found = {status: count for status, count in rows}  # noqa: C416 - rows are not pairs to a type checker
    return {status.value: found.get(status.value, 0) for status in DeliveryStatus}
