"""Bulk re-queues: each a row that a worker works off, batch by batch.

The one rule kept here: a job remembers how far it is in the transaction that takes it there. Killed between any two
batches it goes on; nothing is queued twice.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import TIMESTAMP, Index, func, select, text, update
from sqlalchemy.orm import Mapped, Session, mapped_column

from models.base import Base, Created, Due, Instant
from models.deliveries import Delivery
from models.delivery_search import Wanted
from protocol.errors import NotFound
from protocol.timestamps import format_timestamp


class RequeueJob(Due, Base):
    """One bulk re-queue: of the failed deliveries that fit ``filters`` and had failed by ``failed_by``.

    ``matched`` were counted when it was asked for; ``requeued`` are queued again so far, by this job. It runs as long
    as it has a ``due_at``: when its next batch may be done.
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


_FILTERS = {
    "operator_id": "operatorId",
    "round_id": "roundId",
    "event": "event",
    "error_class": "errorClass",
    "since": "since",
    "until": "until",
}
_MOMENTS = ("since", "until")


def filters_of(wanted: Wanted) -> dict[str, Any]:
    """The filters that are given, under their published names, as JSON keeps them: to the microsecond."""
    given = {published: getattr(wanted, name) for name, published in _FILTERS.items()}
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in given.items()
        if value is not None
    }


def wanted_of(filters: dict[str, Any]) -> Wanted:
    """The same read back."""
    given = {name: filters.get(published) for name, published in _FILTERS.items()}
    return Wanted(**given | {name: _moment(given[name]) for name in _MOMENTS})


def shown_filters(filters: dict[str, Any]) -> dict[str, Any]:
    """The same as the API shows them: every one of them, moments as all our moments."""
    shown = {published: filters.get(published) for published in _FILTERS.values()}
    for name in _MOMENTS:
        moment = _moment(shown[name])
        shown[name] = format_timestamp(moment) if moment else None
    return shown


def _moment(written: str | None) -> datetime | None:
    return datetime.fromisoformat(written) if written else None


def start_job(
    session: Session, actor: str, reason: str, wanted: Wanted, matched: int, failed_by: datetime
) -> RequeueJob:
    """Write a job, due now; one that has nothing to do is finished at once."""
    job = RequeueJob(
        actor=actor,
        reason=reason,
        filters=filters_of(wanted),
        failed_by=failed_by,
        matched=matched,
        requeued=0,
        due_at=failed_by if matched else None,
        finished_at=None if matched else failed_by,
    )
    session.add(job)
    session.flush()
    return job


def take_job(session: Session, job_id: int) -> RequeueJob | None:
    """Take a job to do its next batch; None when it is over, not due yet, or somebody else is at it."""
    due = select(RequeueJob).where(RequeueJob.id == job_id, RequeueJob.due_at <= func.clock_timestamp())
    return session.scalars(due.with_for_update(skip_locked=True)).first()


def cancel_job(session: Session, job_id: int, actor: str) -> bool:
    """End a job before its time; False when it was over. A batch that is being done is waited for, and is its last."""
    cancelled = (
        update(RequeueJob)
        .where(RequeueJob.id == job_id, RequeueJob.due_at.is_not(None))
        .values(cancelled_at=func.clock_timestamp(), cancelled_by=actor, due_at=None)
        .returning(RequeueJob.id)
    )
    return session.scalars(cancelled.execution_options(synchronize_session=False)).first() is not None


def running_jobs(session: Session) -> int:
    """How many jobs are not over."""
    return session.scalars(select(func.count()).where(RequeueJob.due_at.is_not(None))).one()


def jobs(session: Session, limit: int, before_id: int | None = None) -> Sequence[RequeueJob]:
    """So many jobs, newest first, from below ``before_id`` on."""
    query = select(RequeueJob).order_by(RequeueJob.id.desc()).limit(limit)
    return session.scalars(query if before_id is None else query.where(RequeueJob.id < before_id)).all()


def job_by_id(session: Session, job_id: int | None) -> RequeueJob:
    """One job.

    :raises NotFound: no such job.
    """
    row = session.get(RequeueJob, job_id) if job_id is not None else None
    if row is None:
        raise NotFound("no such re-queue")
    return row


def outcomes(session: Session, job_ids: Collection[int]) -> dict[int, dict[str, int]]:
    """How the deliveries that each job queued again stand: how many by status.

    One that was queued again once more since counts for whoever did that.
    """
    found: dict[int, dict[str, int]] = {job_id: {} for job_id in job_ids}
    counted = (
        select(Delivery.requeue_job_id, Delivery.status, func.count())
        .where(Delivery.requeue_job_id.in_(job_ids))
        .group_by(Delivery.requeue_job_id, Delivery.status)
    )
    for job_id, status, count in session.execute(counted):
        if job_id is not None:
            found[job_id][status] = count
    return found
