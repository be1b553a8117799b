"""Chores: what is old enough goes, a batch at a time, and nothing else ever does."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest
from sqlalchemy import text

from models.chores import Name
from models.operators import Operator
from models.queues import pause
from models.requeue import requeue
from models.retention import OLD, Purged, purge_deliveries
from models.session import transaction
from tasks import actors, bell, chores, due
from tasks.bell import Bell
from tasks.chores import do_chore
from tasks.due import ring_again, ring_due
from tests.factories import an_operator, rows

pytestmark = pytest.mark.usefixtures("house")

PURGE = Name.PURGE_DELIVERIES.value
Rung = list[tuple[Bell, object]]


@pytest.fixture
def rung(monkeypatch: pytest.MonkeyPatch) -> Rung:
    """Every bell rung, in order."""
    heard: Rung = []

    def listening(which: Bell, row_id: object = None) -> bool:
        heard.append((which, row_id))
        return True

    monkeypatch.setattr(bell, "ring", listening)
    monkeypatch.setattr(due, "ring", listening)
    return heard


def execute(statement: str, **values: object) -> None:
    with transaction() as session:
        session.execute(text(statement), values)


def finished(
    count: int, days: float, *, status: str = "delivered", attempts: int = 2, attempted_days: float | None = None
) -> list[UUID]:
    """So many deliveries that were finished so many days ago, with attempts an hour apart, the last one then."""
    if not rows("SELECT FROM operators"):
        an_operator("a")
    made = [
        row[0]
        for row in rows(
            "INSERT INTO deliveries (id, operator_id, event, body, status, attempts, created_at, finished_at) "
            "SELECT gen_random_uuid(), 'op_a', 'round.drawn', '', :status, :attempts, at - interval '1 day', at "
            "FROM (SELECT now() - make_interval(secs => :days * 86400 + n) AS at FROM generate_series(1, :count) n) "
            "RETURNING id",
            count=count,
            days=days,
            status=status,
            attempts=attempts,
        )
    ]
    execute(
        "INSERT INTO delivery_attempts (delivery_id, number, started_at, duration_ms, url) "
        "SELECT id, n, now() - make_interval(secs => :days * 86400 + 1, hours => :attempts - n), 12, '' "
        "FROM unnest(CAST(:ids AS uuid[])) AS id, generate_series(1, :attempts) AS n",
        ids=made,
        attempts=attempts,
        days=days if attempted_days is None else attempted_days,
    )
    return made


def make_due() -> None:
    execute("UPDATE chores SET due_at = now(), ring_at = now() WHERE id = :name", name=PURGE)


def kept() -> set[UUID]:
    return {row[0] for row in rows("SELECT id FROM deliveries")}


def due_in() -> float:
    """Seconds until the purge is due."""
    return float(rows("SELECT extract(epoch FROM due_at - now()) FROM chores WHERE id = :name", name=PURGE)[0][0])


def counted() -> tuple[int, int]:
    [(deliveries, attempts)] = rows(
        "SELECT (SELECT count(*) FROM deliveries), (SELECT count(*) FROM delivery_attempts)"
    )
    return deliveries, attempts


def test_every_chore_is_a_row_from_the_first_day_and_due_later() -> None:
    assert {row[0] for row in rows("SELECT id FROM chores")} == {name.value for name in Name}
    assert set(chores._PIECES) == set(Name)
    assert due_in() > 0
    finished(1, 100)
    assert not do_chore(PURGE)
    assert counted() == (1, 2)


def test_what_was_finished_90_days_ago_goes_with_its_attempts_and_the_rest_stays(rung: Rung) -> None:
    old = finished(3, 90.01) + finished(2, 400, status="failed", attempts=3)
    young = finished(2, 89.99) + finished(2, 0, status="failed")
    make_due()
    assert not do_chore(PURGE)
    assert kept() == set(young)
    assert not kept() & set(old)
    assert counted() == (4, 8)
    assert 3_590 < due_in() <= 3_600
    assert rung == []


def test_what_is_pending_stays_however_old(rung: Rung) -> None:
    waiting = finished(2, 200, status="failed")
    with transaction() as session:
        assert requeue(session, waiting[0])
    execute("UPDATE deliveries SET created_at = now() - interval '1 year'")
    never_tried = finished(1, 300, status="pending", attempts=0)
    execute("UPDATE deliveries SET finished_at = NULL, due_at = now() WHERE id = ANY(:ids)", ids=never_tried)
    make_due()
    do_chore(PURGE)
    assert kept() == {waiting[0], *never_tried}


def test_what_was_tried_lately_stays_whatever_its_row_says() -> None:
    lately = finished(1, 100, attempted_days=1)
    finished(1, 100)
    make_due()
    do_chore(PURGE)
    assert kept() == set(lately)


def test_how_long_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    from models.settings import settings

    monkeypatch.setenv("WEBHOOK_RETENTION_DAYS", "365")
    settings.cache_clear()
    young = finished(1, 364)
    finished(1, 366)
    make_due()
    do_chore(PURGE)
    assert kept() == set(young)
    settings.cache_clear()


def test_a_full_batch_is_followed_by_the_next_one_at_once(
    rung: Rung, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tasks.chores")
    monkeypatch.setattr(chores, "BATCH", 10)
    finished(25, 100)
    make_due()
    left = []
    while do_chore(PURGE):
        left.append(counted())
        assert due_in() <= 0
        assert rung == [(Bell.CHORE, PURGE)] * len(left)
        ring_due()  # Nobody rings a second time for what rings for itself.
    assert left == [(15, 30), (5, 10)]
    assert counted() == (0, 0)
    assert due_in() > 3_590
    assert rung == [(Bell.CHORE, PURGE)] * 2
    told = [(record.chore, record.deliveries, record.attempts, record.older_than_days) for record in caplog.records]  # type: ignore[attr-defined]
    assert told == [(PURGE, 10, 20, 90), (PURGE, 10, 20, 90), (PURGE, 5, 10, 90)]


def test_the_oldest_go_first() -> None:
    younger, older = finished(3, 100), finished(3, 200)
    with transaction() as session:
        assert purge_deliveries(session, 90, 3) == Purged(deliveries=3, attempts=6)
    assert kept() == set(younger)
    assert not kept() & set(older)


def test_killed_in_the_middle_nothing_happened_and_it_is_due_as_before(
    rung: Rung, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished(3, 100)
    make_due()

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(chores, "put_off", killed)
        with pytest.raises(KeyboardInterrupt):
            do_chore(PURGE)
    assert counted() == (3, 6)
    assert due_in() <= 0
    assert rung == []
    do_chore(PURGE)
    assert counted() == (0, 0)


def test_two_workers_at_once_do_it_once(rung: Rung) -> None:
    finished(3, 100)
    make_due()
    with transaction() as session:
        session.execute(text("SELECT FROM chores FOR UPDATE"))  # as the other one has it
        assert not do_chore(PURGE)
        assert counted() == (3, 6)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(do_chore, [PURGE] * 8))
    assert counted() == (0, 0)


def test_a_delivery_that_somebody_is_at_is_left_to_them() -> None:
    held, *others = finished(3, 100, status="failed")
    with transaction() as theirs:
        assert requeue(theirs, held)
        with transaction() as session:
            assert purge_deliveries(session, 90, 10) == Purged(deliveries=2, attempts=4)
    assert kept() == {held}
    assert not kept() & set(others)


def test_the_audit_log_stays(rung: Rung) -> None:
    [gone] = finished(1, 100, status="failed")
    execute(
        "INSERT INTO audit_log (actor, action, subject, reason, details, at) "
        "VALUES ('nina', 'delivery.requeue', :id, 'x', '{}', now() - interval '3 years')",
        id=str(gone),
    )
    make_due()
    do_chore(PURGE)
    assert counted() == (0, 0)
    assert rows("SELECT subject FROM audit_log") == [(str(gone),)]
    with transaction() as session:
        assert session.get(Operator, "op_a") is not None


def test_the_scheduler_rings_for_it_when_it_is_due_and_not_while_webhooks_are_paused(rung: Rung) -> None:
    ring_due()
    assert rung == []
    make_due()
    with transaction() as session:
        pause(session, Bell.CHORE.queue, "nina", "looking into it")
    ring_due()
    assert rung == []
    finished(1, 100)
    actors.broker.actors[Bell.CHORE].fn(PURGE)
    assert counted() == (1, 2)
    execute("DELETE FROM queue_pauses")
    with transaction() as session:
        ring_again(session, Bell.CHORE.queue)
    assert (Bell.CHORE, PURGE) in rung
    actors.broker.actors[Bell.CHORE].fn(PURGE)
    assert counted() == (0, 0)


def test_a_batch_is_read_from_the_index_and_nothing_else_is(explained: Callable[[], str]) -> None:
    """Of 40,000 deliveries 20,000 are old. A batch touches its own and not the rest."""
    an_operator("a")
    execute(
        "INSERT INTO deliveries (id, operator_id, event, body, status, attempts, created_at, finished_at) "
        "SELECT gen_random_uuid(), 'op_a', 'round.drawn', '', 'delivered', 1, at, at "
        "FROM (SELECT now() - make_interval(secs => 86400 * 180 * random()) AS at FROM generate_series(1, 40000))"
    )
    execute(
        "INSERT INTO delivery_attempts (delivery_id, number, started_at, duration_ms, url) "
        "SELECT id, 1, finished_at, 12, '' FROM deliveries"
    )
    plan = explained()
    assert "Index Scan using ix_deliveries_finished_at" in plan, plan
    assert "Seq Scan" not in plan, plan
    assert "Sort" not in plan, plan


@pytest.fixture
def explained() -> Callable[[], str]:
    """The plan of choosing a batch, with statistics as autovacuum keeps them."""

    def explain() -> str:
        execute("ANALYZE deliveries")
        execute("ANALYZE delivery_attempts")
        return "\n".join(row[0] for row in rows(f"EXPLAIN {OLD.text}", days=90, most=1_000))

    return explain
