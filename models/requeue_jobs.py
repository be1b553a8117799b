"""Bulk re-queues: each a row that a worker works off, batch by batch.

The one rule kept here: a job remembers how far it is in the transaction that takes it there. Killed between any two
batches it goes on; nothing is queued twice.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import TIMESTAMP, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, Created, Due, Instant


class RequeueJob(Due, Base):
    """One bulk re-queue: of the failed deliveries that fit ``filters`` and had failed by ``failed_by``.

    ``matched`` were counted when it was asked for; ``requeued`` are queued again so far.
    """

    __tablename__ = "requeue_jobs"
    __table_args__ = (Index("ix_requeue_jobs_ring", "ring_at", postgresql_where=text("due_at IS NOT NULL")),)

    id: Mapped[int] = mapped_column(primary_key=True)
    created_at: Mapped[Created]
    actor: Mapped[str]
    reason: Mapped[str]
    filters: Mapped[dict[str, Any]]
    failed_by: Mapped[Instant]
    matched: Mapped[int]
    requeued: Mapped[int] = mapped_column(server_default="0")
    cancelled_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    cancelled_by: Mapped[str | None]
    finished_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
