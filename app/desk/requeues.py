"""Looking after bulk re-queues: looking before, beginning, watching, cancelling.

The one rule kept here: nothing is queued again by what somebody forgot to say. Without a filter it takes an explicit
"all of them", and a filter that can fit nothing is an error, not an empty success.
"""

from dataclasses import replace
from typing import Any

from sqlalchemy.orm import Session

from app.resources.cursors import cursor_at, page_of
from app.resources.requeues import preview_view, requeue_view
from models.audit import record
from models.deliveries import DeliveryStatus
from models.delivery_search import Wanted
from models.operators import Operator
from models.requeue import count_failed, preview
from models.requeue_jobs import RequeueJob, cancel_job, filters_of, job_by_id, jobs, outcomes, start_job
from models.rounds import Round
from models.session import database_now
from protocol.errors import Conflict, Invalid
from tasks.bell import Bell, ring_after_commit


def previewed(session: Session, wanted: Wanted) -> dict[str, Any]:
    """How many failed deliveries fit, and of which operators, events and error classes they are.

    :raises Invalid: another status than failed is asked for, or an operator or round that does not exist.
    """
    _check(session, wanted)
    return preview_view(preview(session, replace(wanted, status=None), database_now(session)))


def start(session: Session, actor: str, wanted: Wanted, reason: str, *, everything: bool = False) -> dict[str, Any]:
    """Begin to queue all that fit and have failed by now again; a worker does it.

    ``everything`` says that no filter is given on purpose.

    :raises Invalid: as above; there is no filter, or there is one beside ``everything``.
    """
    _check(session, wanted)
    filters = filters_of(wanted)
    if not filters and not everything:
        told = ["Name a filter, or say all: true."]
        raise Invalid("this would be every failed delivery", details={"all": told})
    if filters and everything:
        told = [f"There is a filter as well: {', '.join(filters)}."]
        raise Invalid("these deliveries cannot be all", details={"all": told})
    now = database_now(session)
    wanted = replace(wanted, status=None)
    job = start_job(session, actor, reason, wanted, count_failed(session, wanted, now), now)
    subject = _subject(job)
    record(session, actor, "delivery.requeue_matching", subject, reason, filters=filters, matched=job.matched)
    ring_after_commit(session, Bell.REQUEUE, [job.id])
    return {**_shown(session, job), "dryRun": False}


def listed(session: Session, limit: int, after: tuple[int] | None) -> dict[str, Any]:
    """A page of re-queues, newest first."""
    page, next_cursor = page_of(jobs(session, limit + 1, after[0] if after else None), limit, _place_of)
    standing = outcomes(session, [job.id for job in page])
    rows = [requeue_view(job, standing[job.id]) for job in page]
    return {"requeues": rows, "count": len(rows), "nextCursor": next_cursor}


def shown(session: Session, job_id: int | None) -> dict[str, Any]:
    """One re-queue.

    :raises NotFound: no such re-queue.
    """
    return _shown(session, job_by_id(session, job_id))


def how_far(session: Session, job_id: int) -> tuple[bool, int]:
    """Whether a re-queue is over, and how many it has queued again: cheap enough to be asked all the time.

    :raises NotFound: no such re-queue.
    """
    job = job_by_id(session, job_id)
    return job.due_at is None, job.requeued


def cancel(session: Session, actor: str, job_id: int | None, reason: str) -> dict[str, Any]:
    """Queue nothing more for a re-queue. What it has queued again stays so.

    :raises NotFound: no such re-queue.
    :raises Conflict: it is over.
    """
    job = job_by_id(session, job_id)
    done = cancel_job(session, job.id, actor)
    session.refresh(job)
    if not done:
        state = "cancelled" if job.cancelled_at else "finished"
        raise Conflict(f"the re-queue is {state} already", code="wrong_state")
    numbers = {"matched": job.matched, "requeued": job.requeued}
    record(session, actor, "delivery.requeue_cancelled", _subject(job), reason, **numbers)
    return _shown(session, job)


def _check(session: Session, wanted: Wanted) -> None:
    if wanted.status not in (None, DeliveryStatus.FAILED):
        raise Invalid(
            "these deliveries cannot be queued again", details={"status": ["Only failed ones are queued again."]}
        )
    unknown = {}
    if wanted.operator_id is not None and session.get(Operator, wanted.operator_id) is None:
        unknown["operatorId"] = ["No such operator."]
    if wanted.round_id is not None and session.get(Round, wanted.round_id) is None:
        unknown["roundId"] = ["No such round."]
    if unknown:
        raise Invalid("nothing can fit these filters", details=unknown)


def _shown(session: Session, job: RequeueJob) -> dict[str, Any]:
    return requeue_view(job, outcomes(session, [job.id])[job.id])


def _subject(job: RequeueJob) -> str:
    return f"re-queue {job.id}"


def _place_of(job: RequeueJob) -> str:
    return cursor_at(job.id)
