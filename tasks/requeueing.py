"""Working off a bulk re-queue: a batch a bell, a bell a second.

The one rule kept here: one batch is one transaction under the job's row. It holds what is queued again, how many those
are and when the next batch is due, so there is no moment at which a worker could die and leave the one without the
other: before the commit nothing has happened and the job is due as it was, after it the scheduler finds the job and
the deliveries due, whether or not anybody rang for them.

Live events never wait for it. What is queued again stands behind everything else at its own endpoint and goes out in
the slow lane, two at a time an endpoint (``models.leases``). So that it does not fill that lane either, where other
operators' retries are, nothing is released while what is out already could take half of one sender's.
"""

import logging
from datetime import timedelta

from sqlalchemy.orm import Session

from models.audit import record
from models.requeue import any_failed, requeue_some, slots_taken
from models.requeue_jobs import RequeueJob, running_jobs, take_job, wanted_of
from models.session import database_now, transaction
from models.settings import settings
from tasks.bell import Bell, answers, ring_after_commit

log = logging.getLogger(__name__)

BEAT_SECONDS = 1.0


@answers(Bell.REQUEUE)
def requeue_batch(job_id: int) -> int | None:
    """Do one batch of a job; returns how many were queued again. None when it is over, not due, or being done."""
    with transaction() as session:
        job = take_job(session, job_id)
        if job is None:
            return None
        wanted, most = wanted_of(job.filters), _most(session)
        queued = []
        if most > 0:
            limit = settings().requeue_per_second
            queued = requeue_some(session, job.id, wanted, job.failed_by, most, limit)
        job.requeued += len(queued)
        now = database_now(session)
        if len(queued) == most > 0 or any_failed(session, wanted, job.failed_by):
            job.due_at = job.ring_at = now + timedelta(seconds=BEAT_SECONDS)
        else:
            _finish(session, job)
        ring_after_commit(session, Bell.DELIVERIES, queued)
    if queued or job.due_at is None:
        log.info("deliveries queued again", extra={"job": job_id, "count": len(queued), "over": job.due_at is None})
    return len(queued)


def _most(session: Session) -> int:
    """How many may be released now: this job's share of a second, and no more than the slow lane has room for."""
    half_a_lane = max(1, settings().webhook_concurrency // 6)
    share = -(-settings().requeue_per_second // running_jobs(session))
    return min(share, half_a_lane - slots_taken(session))


def _finish(session: Session, job: RequeueJob) -> None:
    job.due_at, job.finished_at = None, database_now(session)
    numbers = {"matched": job.matched, "requeued": job.requeued}
    record(session, job.actor, "delivery.requeue_finished", f"re-queue {job.id}", job.reason, **numbers)
