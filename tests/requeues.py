"""Failed deliveries by the hundred, and bulk re-queues worked off without a worker."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import text

from models.delivery_search import Wanted
from models.requeue import count_failed
from models.requeue_jobs import start_job
from models.session import database_now, transaction
from tasks.requeueing import requeue_batch
from tests.factories import rows


def failed(
    count: int,
    operator_id: str = "op_a",
    event: str = "round.sealed",
    error_class: str = "timeout",
    round_id: int | None = None,
) -> list[UUID]:
    """So many deliveries that have failed after three attempts, oldest first."""
    written = text("""
        INSERT INTO deliveries (
            id, operator_id, round_id, event, body, status, attempts, created_at, finished_at, error_class
        )
        SELECT gen_random_uuid(), :operator, :round, :event, '{}', 'failed', 3,
            now() - interval '1 hour' + n * interval '1 microsecond', now() - interval '1 minute', :error
        FROM generate_series(1, :count) n RETURNING id, created_at
    """)
    values = {"operator": operator_id, "round": round_id, "event": event, "error": error_class, "count": count}
    with transaction() as session:
        made = session.execute(written, values).all()
    return [delivery_id for delivery_id, _ in sorted(made, key=lambda row: row.created_at)]


def a_job(wanted: Wanted | None = None) -> int:
    """A bulk re-queue of what fits and has failed by now."""
    wanted = wanted or Wanted()
    with transaction() as session:
        now = database_now(session)
        return start_job(session, "nina", "outage over", wanted, count_failed(session, wanted, now), now).id


def a_beat() -> None:
    """The time between two batches passes."""
    with transaction() as session:
        session.execute(text("UPDATE requeue_jobs SET due_at = now() WHERE due_at IS NOT NULL"))


def work_off(job_id: int, batches: int = 100) -> list[int]:
    """Do a job's batches one after the other, at most so many; how many each of them queued again."""
    done = []
    while len(done) < batches and (count := requeue_batch(job_id)) is not None:
        done.append(count)
        a_beat()
    return done


def queued() -> set[UUID]:
    """What is queued again."""
    return {delivery_id for (delivery_id,) in rows("SELECT id FROM deliveries WHERE priority = 2")}


def fail_again() -> None:
    """All that is pending fails now."""
    with transaction() as session:
        session.execute(
            text(
                "UPDATE deliveries SET status = 'failed', due_at = NULL, finished_at = clock_timestamp() "
                "WHERE status = 'pending'"
            )
        )
