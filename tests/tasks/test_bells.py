"""The doorbell: rung after the commit, again when lost, and never needed for anything to be right."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
import redis
from sqlalchemy import text

from models.deliveries import announce
from models.endpoints import pause_endpoint
from models.session import transaction
from tasks import actors, bell, due
from tasks.bell import DELIVERIES_A_BELL, MOST_BELLS, Bell, ring, ring_after_commit, unheard
from tasks.broker import make_broker
from tasks.due import ring_due
from tests.factories import a_round, an_operator, move_clock_to, some_operators

pytestmark = pytest.mark.usefixtures("house")


@pytest.fixture
def rung(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Bell, object]]:
    """Every bell rung, in order; they sound all the same."""
    heard: list[tuple[Bell, object]] = []

    def listening(which: Bell, row_id: object = None) -> bool:
        heard.append((which, row_id))
        return True

    monkeypatch.setattr(bell, "ring", listening)
    monkeypatch.setattr(due, "ring", listening)
    # Bells of tests that let theirs sound lie in the Redis that all of them share.
    monkeypatch.setattr(due, "unheard", lambda which: 0)
    return heard


def test_every_bell_is_answered_by_an_actor_on_a_queue_that_workers_consume() -> None:
    declared = actors.broker.actors
    assert set(declared) == set(Bell)
    assert {declared[which].queue_name for which in Bell} == {which.queue for which in Bell} == actors.broker.queues


def test_bells_ring_after_the_commit_and_not_after_an_undoing(rung: list[tuple[Bell, object]]) -> None:
    with transaction() as session:
        ring_after_commit(session, Bell.ROUND, [1, 2])
        assert rung == []
    assert rung == [(Bell.ROUND, 1), (Bell.ROUND, 2)]
    with suppress(RuntimeError), transaction() as session:
        ring_after_commit(session, Bell.ROUND, [3])
        raise RuntimeError
    assert len(rung) == 2


def test_a_bell_that_redis_does_not_take_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(message: object) -> None:
        raise redis.ConnectionError

    monkeypatch.setattr(bell.broker, "enqueue", away)
    assert ring(Bell.ROUND, 1) is False


def test_a_row_not_due_is_not_rung_for(rung: list[tuple[Bell, object]]) -> None:
    a_round(some_operators(1))
    ring_due()
    assert (Bell.ROUND, 1) not in rung


def test_a_due_row_is_rung_for_once_until_its_bell_counts_as_lost(rung: list[tuple[Bell, object]]) -> None:
    round_id = a_round(some_operators(1))
    move_clock_to(round_id, "seal_at")
    for _ in range(3):
        ring_due()
    assert rung.count((Bell.ROUND, round_id)) == 1
    with transaction() as session:
        session.execute(text("UPDATE rounds SET ring_at = now()"))
    ring_due()
    assert rung.count((Bell.ROUND, round_id)) == 2


def test_many_schedulers_at_once_ring_once(rung: list[tuple[Bell, object]]) -> None:
    operators = some_operators(1)
    rounds = [a_round(operators) for _ in range(10)]
    for round_id in rounds:
        move_clock_to(round_id, "seal_at")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: ring_due(), range(8)))
    assert sorted(row for which, row in rung if which is Bell.ROUND) == rounds  # type: ignore[type-var]


def test_one_bell_calls_for_many_deliveries_and_more_bells_for_very_many(rung: list[tuple[Bell, object]]) -> None:
    a_round(some_operators(2))
    assert rung.count((Bell.DELIVERIES, None)) == 1
    rung.clear()
    for deliveries, bells in ((DELIVERIES_A_BELL, 1), (DELIVERIES_A_BELL + 1, 2), (10_000, MOST_BELLS)):
        with transaction() as session:
            ring_after_commit(session, Bell.DELIVERIES, range(deliveries))
        assert rung == [(Bell.DELIVERIES, None)] * bells
        rung.clear()


def test_deliveries_are_rung_for_as_long_as_any_can_be_leased(rung: list[tuple[Bell, object]]) -> None:
    an_operator("a")
    ring_due()
    with transaction() as session:
        announce(session, "round.sealed", ["op_a"], None, {})
    for _ in range(2):
        ring_due()
    assert rung == [(Bell.DELIVERIES, None)] * 2
    with transaction() as session:
        pause_endpoint(session, "op_a", "anna", "they asked us to")
    ring_due()
    assert len(rung) == 2


def test_bells_that_nobody_hears_do_not_pile_up(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = make_broker(redis_url)
    broker.declare_queue(Bell.DELIVERIES.queue)
    monkeypatch.setattr(bell, "broker", broker)
    an_operator("a")
    with transaction() as session:
        announce(session, "round.sealed", ["op_a"], None, {})
    assert [ring_due() for _ in range(MOST_BELLS + 2)] == [1] * MOST_BELLS + [0, 0]
    assert unheard(Bell.DELIVERIES) == MOST_BELLS
    broker.close()
