"""Bulk re-queues worked off: a bounded batch a second, whatever dies in between, and never in anybody's way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest
from sqlalchemy import text

from models.audit import AuditEntry
from models.deliveries import announce
from models.delivery_search import Wanted
from models.endpoints import Health, note_health, pause_endpoint
from models.leases import SLOW_CAP, Lane, lease_some
from models.queues import pause, unpause
from models.requeue_jobs import RequeueJob, cancel_job, outcomes
from models.session import transaction
from models.settings import settings
from tasks import actors, requeueing
from tasks.bell import Bell
from tasks.due import ring_due
from tasks.requeueing import requeue_batch
from tests.factories import an_operator, rows, some_operators
from tests.requeues import a_beat, a_job, fail_again, failed, queued, work_off

pytestmark = pytest.mark.usefixtures("house")


@pytest.fixture
def pace(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets how many a second, and how many sendings at once a process has."""

    def set_pace(per_second: int, concurrency: int = 6_000) -> None:
        monkeypatch.setenv("REQUEUE_PER_SECOND", str(per_second))
        monkeypatch.setenv("WEBHOOK_CONCURRENCY", str(concurrency))
        settings.cache_clear()

    return set_pace


def deliver_all() -> None:
    """Everything that waits is delivered."""
    with transaction() as session:
        session.execute(
            text(
                "UPDATE deliveries SET status = 'delivered', due_at = NULL, finished_at = clock_timestamp() "
                "WHERE status = 'pending'"
            )
        )


def job(job_id: int) -> RequeueJob:
    with transaction() as session:
        return session.get_one(RequeueJob, job_id)


def test_a_job_queues_all_that_fits_again_oldest_first_and_then_it_is_finished(pace: Callable[..., None]) -> None:
    pace(4)
    some_operators(2)
    mine, _ = failed(10), failed(3, "op_b")
    job_id = a_job(Wanted(operator_id="op_a"))
    done = []
    while (count := requeue_batch(job_id)) is not None:
        done.append(count)
        assert queued() == set(mine[: sum(done)])
        deliver_all()
        a_beat()
    assert done == [4, 4, 2]
    assert rows("SELECT matched, requeued, finished_at IS NOT NULL, due_at FROM requeue_jobs") == [(10, 10, True, None)]
    again = "status = 'delivered' AND attempts_before = 3 AND requeue_job_id = :job"
    assert rows(f"SELECT count(*) FROM deliveries WHERE {again}", job=job_id) == [(10,)]
    assert rows("SELECT actor, action, subject, reason, details FROM audit_log") == [
        ("nina", "delivery.requeue_finished", "re-queue 1", "outage over", {"matched": 10, "requeued": 10})
    ]


def test_bells_in_a_row_do_not_outrun_the_pace(pace: Callable[..., None]) -> None:
    pace(4)
    an_operator("a")
    failed(10)
    job_id = a_job()
    assert [requeue_batch(job_id) for _ in range(3)] == [4, None, None]


def test_of_workers_that_hear_one_bell_one_does_the_batch(pace: Callable[..., None]) -> None:
    pace(4)
    an_operator("a")
    failed(10)
    job_id, together = a_job(), threading.Barrier(6)

    def hear(_: int) -> int | None:
        together.wait()
        return requeue_batch(job_id)

    with ThreadPoolExecutor(6) as pool:
        done = list(pool.map(hear, range(6)))
    assert sorted(count for count in done if count is not None) == [4]
    assert len(queued()) == job(job_id).requeued == 4


@pytest.mark.parametrize("moment", ["before anything", "after the rows", "at the very end"])
def test_killed_within_a_batch_nothing_of_it_has_happened_and_the_next_bell_does_it(
    pace: Callable[..., None], monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    pace(4)
    an_operator("a")
    written = failed(10)
    job_id = a_job()
    assert requeue_batch(job_id) == 4
    deliver_all()
    a_beat()
    place = {"before anything": "slots_taken", "after the rows": "database_now", "at the very end": "ring_after_commit"}

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(requeueing, place[moment], die)
        with pytest.raises(KeyboardInterrupt):
            requeue_batch(job_id)
    assert queued() == set(written[:4])
    assert (job(job_id).requeued, job(job_id).finished_at) == (4, None)
    assert work_off(job_id, batches=1) == [4]
    deliver_all()
    a_beat()
    work_off(job_id)
    assert queued() == set(written)
    assert job(job_id).requeued == 10
    assert rows("SELECT count(*) FROM deliveries WHERE attempts_before = 3") == [(10,)]


def test_a_job_whose_bell_was_lost_is_found_and_rung_for(monkeypatch: pytest.MonkeyPatch) -> None:
    rung: list[object] = []
    monkeypatch.setattr("tasks.due.ring", lambda bell, row_id=None: rung.append((bell, row_id)) or True)
    an_operator("a")
    failed(1)
    job_id = a_job()
    ring_due()
    assert (Bell.REQUEUE, job_id) in rung
    work_off(job_id)
    rung.clear()
    ring_due()
    assert Bell.REQUEUE not in {bell for bell, _ in rung}  # type: ignore[misc]


def test_while_webhooks_are_paused_no_job_goes_on() -> None:
    an_operator("a")
    failed(2)
    job_id = a_job()
    with transaction() as session:
        pause(session, Bell.REQUEUE.queue, "nina", "x")
    actors.broker.actors[Bell.REQUEUE].fn(job_id)
    assert queued() == set()
    with transaction() as session:
        unpause(session, Bell.REQUEUE.queue)
    actors.broker.actors[Bell.REQUEUE].fn(job_id)
    assert len(queued()) == 2


def test_cancelled_in_the_middle_it_queues_nothing_more_and_takes_nothing_back(pace: Callable[..., None]) -> None:
    pace(4)
    an_operator("a")
    written = failed(10)
    job_id = a_job()
    requeue_batch(job_id)
    with transaction() as session:
        assert cancel_job(session, job_id, "otto")
        assert not cancel_job(session, job_id, "otto")
    a_beat()
    assert requeue_batch(job_id) is None
    assert queued() == set(written[:4])
    assert (job(job_id).requeued, job(job_id).cancelled_by, job(job_id).finished_at) == (4, "otto", None)


def test_once_a_cancel_is_answered_no_batch_is_under_way(pace: Callable[..., None]) -> None:
    pace(4)
    an_operator("a")
    failed(10)
    job_id = a_job()

    def cancel() -> int:
        with transaction() as session:
            cancel_job(session, job_id, "otto")
        return len(queued())

    with ThreadPoolExecutor(2) as pool:
        batch, seen = pool.submit(requeue_batch, job_id), pool.submit(cancel)
        batch.result()
        assert seen.result() == len(queued()) == job(job_id).requeued


def test_jobs_that_overlap_share_the_work_and_queue_nothing_twice(pace: Callable[..., None]) -> None:
    pace(7)
    some_operators(2)
    failed(30), failed(30, "op_b")
    with transaction() as session:
        session.execute(text("UPDATE deliveries SET attempts_before = 0"))
    ids = [a_job(), a_job(Wanted(operator_id="op_a")), a_job(Wanted(event="round.sealed"))]

    def work(job_id: int) -> int:
        total = 0
        while job(job_id).due_at is not None:
            total += requeue_batch(job_id) or 0
            deliver_all()
            a_beat()
        return total

    with ThreadPoolExecutor(3) as pool:
        totals = list(pool.map(work, ids))
    assert sum(totals) == 60
    assert [job(job_id).requeued for job_id in ids] == totals
    assert rows("SELECT count(*) FROM deliveries WHERE attempts_before = 3 AND status = 'delivered'") == [(60,)]


def test_what_fails_once_more_meanwhile_is_not_queued_twice_by_the_same_request_sent_twice(
    pace: Callable[..., None],
) -> None:
    pace(4)
    an_operator("a")
    failed(6)
    first, second = a_job(), a_job()
    assert requeue_batch(first) == 2  # two jobs run: half of the pace each
    fail_again()
    a_beat()
    assert sum(work_off(second)) == 4
    fail_again()
    assert sum(work_off(first)) == 0
    assert rows("SELECT requeued, matched FROM requeue_jobs ORDER BY id") == [(2, 6), (4, 6)]


def test_a_job_says_what_came_of_what_it_queued_again() -> None:
    an_operator("a")
    failed(5)
    job_id = a_job()
    work_off(job_id)
    with transaction() as session:
        session.execute(
            text(
                "UPDATE deliveries SET status = 'delivered', due_at = NULL "
                "WHERE id IN (SELECT id FROM deliveries ORDER BY created_at LIMIT 2)"
            )
        )
        assert outcomes(session, [job_id]) == {job_id: {"delivered": 2, "pending": 3}}


def test_at_one_endpoint_no_more_wait_than_a_second_releases_and_the_others_are_not_held_up(
    pace: Callable[..., None],
) -> None:
    pace(5)
    some_operators(3)
    dead, _, _ = failed(50), failed(12, "op_b"), failed(3, "op_c")
    job_id = a_job()
    for _ in range(6):
        requeue_batch(job_id)
        with transaction() as session:
            session.execute(
                text(
                    "UPDATE deliveries SET status = 'delivered', due_at = NULL, finished_at = clock_timestamp() "
                    "WHERE status = 'pending' AND operator_id <> 'op_a'"
                )
            )
        a_beat()
    assert rows("SELECT operator_id, count(*) FROM deliveries WHERE status = 'delivered' GROUP BY 1 ORDER BY 1") == [
        ("op_b", 12),
        ("op_c", 3),
    ]
    assert queued() >= set(dead[:5])
    assert rows("SELECT count(*) FROM deliveries WHERE status = 'pending' AND operator_id = 'op_a'") == [(5,)]
    assert job(job_id).finished_at is None  # it waits for room, and can be cancelled until then


def test_nothing_is_released_while_half_of_the_slow_lane_is_taken(pace: Callable[..., None]) -> None:
    pace(100, concurrency=36)
    for operator_id in some_operators(8):
        failed(4, operator_id)
    job_id = a_job()
    # 36 sendings at once are 12 in the slow lane; half of these are 6.
    assert requeue_batch(job_id) == 6
    a_beat()
    taken = rows("SELECT count(*) FROM deliveries WHERE priority = 2 GROUP BY operator_id")
    room = 6 - sum(min(count, SLOW_CAP) for (count,) in taken)
    assert requeue_batch(job_id) == room
    a_beat()
    deliver_all()
    assert requeue_batch(job_id) == 6


def test_what_waits_at_a_paused_endpoint_does_not_hold_a_job_up(pace: Callable[..., None]) -> None:
    pace(100, concurrency=36)
    for operator_id in some_operators(8):
        failed(1, operator_id)
        with transaction() as session:
            pause_endpoint(session, operator_id, "nina", "x")
    assert sum(work_off(a_job())) == 8


@pytest.mark.parametrize("trouble", ["paused", "slow", "failing"])
def test_with_a_thousand_queued_again_a_live_event_goes_out_first(pace: Callable[..., None], trouble: str) -> None:
    pace(1_000)
    some_operators(3)
    failed(1_000)
    assert sum(work_off(a_job(), batches=1)) == 1_000
    with transaction() as session:
        if trouble == "paused":
            pause_endpoint(session, "op_a", "nina", "x")
        elif trouble == "failing":
            note_health(session, {"op_a": Health(recovered=False, failures=1)})
        else:  # all that it may have at once in the slow lane is out, and does not come back
            lease_some(session, Lane.SLOW, SLOW_CAP, 60)
    with transaction() as session:
        [mine, *others] = announce(session, "round.drawn", ["op_a", "op_b", "op_c"], None, {})
    fast, slow = leased(Lane.FAST, 3), leased(Lane.SLOW, 1)
    assert fast >= set(others)
    if trouble == "failing":
        assert slow == {mine}
    else:
        assert (mine in fast) == (trouble == "slow")


def leased(lane: Lane, most: int) -> set[UUID]:
    with transaction() as session:
        return {lease.id for lease in lease_some(session, lane, most, 60)}


def test_retries_go_before_what_was_queued_again(pace: Callable[..., None]) -> None:
    pace(1_000)
    an_operator("a")
    failed(1_000)
    work_off(a_job(), batches=1)
    with transaction() as session:
        [retry] = announce(session, "round.drawn", ["op_a"], None, {})
        session.execute(text("UPDATE deliveries SET priority = 1 WHERE id = :id"), {"id": retry})
    assert leased(Lane.SLOW, 1) == {retry}


def test_who_began_it_is_on_record_when_it_ends() -> None:
    an_operator("a")
    failed(1)
    work_off(a_job())
    with transaction() as session:
        assert session.query(AuditEntry).one().actor == "nina"
