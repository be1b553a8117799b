"""Queues: what waits is counted, a pause holds it up at once, and nothing is lost or doubled by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import text

from models.deliveries import announce
from models.leases import Lane, Leased, lease_some, release_some
from models.rounds import lock_round
from models.session import transaction
from tasks import actors, bell, due
from tasks.bell import Bell
from tasks.deliveries import beside
from tests.app.conftest import Caller, assert_error
from tests.factories import a_round, an_operator, move_clock_to, rows, some_operators, the_round

PATH = "/api/admin/queues"


@pytest.fixture
def rung(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Bell, Any]]:
    """Every bell rung, in order; none reaches a worker."""
    heard: list[tuple[Bell, Any]] = []

    def listening(which: Bell, row_id: Any = None) -> bool:
        heard.append((which, row_id))
        return True

    monkeypatch.setattr(bell, "ring", listening)
    monkeypatch.setattr(due, "ring", listening)
    return heard


@pytest.fixture
def woken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every time that the sender was woken; it stays asleep."""
    heard: list[str] = []
    monkeypatch.setattr(beside, "wake", lambda: heard.append("woken"))
    return heard


def answer(which: Bell, *row_id: Any) -> None:
    """Do what a worker does when it hears the bell."""
    actors.broker.actors[which].fn(*row_id)


def leased() -> list[Leased]:
    with transaction() as session:
        return lease_some(session, Lane.FAST, 100, 30)


def a_delivery() -> str:
    with transaction() as session:
        return str(announce(session, "round.sealed", [an_operator("a")], None, {})[0])


def queue(caller: Caller, name: str) -> dict[str, Any]:
    listed = caller.get(PATH).get_json()
    assert listed["count"] == 2
    found: dict[str, Any] = next(one for one in listed["queues"] if one["name"] == name)
    return found


def pause(caller: Caller, name: str) -> dict[str, Any]:
    answered = caller.post(f"{PATH}/{name}/pause", {"reason": "receiver on fire"})
    assert answered.status_code == 200, answered.text
    body: dict[str, Any] = answered.get_json()
    return body


def resume(caller: Caller, name: str) -> dict[str, Any]:
    answered = caller.post(f"{PATH}/{name}/resume", {"reason": "fire is out"})
    assert answered.status_code == 200, answered.text
    body: dict[str, Any] = answered.get_json()
    return body


def test_an_empty_house_has_two_idle_queues(admin: Callable[..., Caller]) -> None:
    idle = {"paused": False, "depth": 0, "oldestDueSeconds": None, "inFlight": 0}
    idle |= {"pausedAt": None, "pausedBy": None, "reason": None}
    caller = admin("oncall")
    assert queue(caller, "deliveries") == {"name": "deliveries", **idle}
    assert queue(caller, "rounds") == {"name": "rounds", **idle}


def test_what_is_due_and_what_is_being_done_are_counted_apart(admin: Callable[..., Caller]) -> None:
    with transaction() as session:
        made = announce(session, "round.sealed", some_operators(3), None, {})
        for later in made[1:]:
            session.execute(
                text("UPDATE deliveries SET due_at = now() + interval '1 hour' WHERE id = :d"), {"d": later}
            )
    assert [lease.id for lease in leased()] == [made[0]]
    with transaction() as session:
        session.execute(
            text("UPDATE deliveries SET due_at = now() - interval '90 seconds' WHERE id = :d"), {"d": made[1]}
        )
    found = queue(admin("oncall"), "deliveries")
    assert (found["depth"], found["inFlight"]) == (1, 1)
    assert 90 <= found["oldestDueSeconds"] < 120


def test_a_round_somebody_is_at_is_in_flight(admin: Callable[..., Caller]) -> None:
    operators = some_operators(1)
    held, waiting = a_round(operators), a_round(operators)
    a_round(operators)
    for round_id in (held, waiting):
        move_clock_to(round_id, "seal_at")
    caller = admin("oncall")
    with transaction() as session:
        assert lock_round(session, held) is not None
        found = queue(caller, "rounds")
    assert (found["depth"], found["inFlight"]) == (1, 1)
    found = queue(caller, "rounds")
    assert (found["depth"], found["inFlight"]) == (2, 0)


def test_a_paused_queue_is_neither_rung_for_nor_worked_on(
    admin: Callable[..., Caller], rung: list[tuple[Bell, Any]], woken: list[str]
) -> None:
    a_delivery()
    round_id = a_round(["op_a"])
    move_clock_to(round_id, "seal_at")
    caller = admin("oncall")
    assert pause(caller, "deliveries")["paused"] is True
    rung.clear()
    due.ring_due()
    assert {which for which, _ in rung} == {Bell.ROUND}
    answer(Bell.DELIVERIES)
    assert woken == leased() == []
    pause(caller, "rounds")
    rung.clear()
    due.ring_due()
    assert rung == []
    answer(Bell.ROUND, round_id)
    assert the_round(round_id).state.value == "OPEN"


def test_work_begun_before_the_pause_is_finished(admin: Callable[..., Caller]) -> None:
    a_delivery()
    begun = leased()
    caller = admin("oncall")
    assert pause(caller, "deliveries")["inFlight"] == 1
    with transaction() as session:
        assert release_some(session, begun, 60) == 1
    assert queue(caller, "deliveries")["inFlight"] == 0


def test_a_resumed_queue_is_rung_for_at_once_even_where_bells_went_unanswered(
    admin: Callable[..., Caller], rung: list[tuple[Bell, Any]], woken: list[str]
) -> None:
    a_delivery()
    round_id = a_round(["op_a"])
    move_clock_to(round_id, "seal_at")
    due.ring_due()  # the bells that will be heard during the pause
    caller = admin("oncall")
    for name, bell_of_it, row in (("deliveries", (Bell.DELIVERIES,), ()), ("rounds", (Bell.ROUND,), (round_id,))):
        pause(caller, name)
        answer(*bell_of_it, *row)
        rung.clear()
        assert resume(caller, name)["paused"] is False
        assert (*bell_of_it, row[0] if row else None) in rung
    assert woken == []
    answer(Bell.DELIVERIES)
    assert woken == ["woken"]


def test_a_resume_disturbs_nobody_who_is_at_work(admin: Callable[..., Caller], rung: list[tuple[Bell, Any]]) -> None:
    round_id = a_round(some_operators(1))
    move_clock_to(round_id, "seal_at")
    caller = admin("oncall")
    for name in ("rounds", "deliveries"):
        pause(caller, name)
    rung.clear()
    with transaction() as session:
        assert lock_round(session, round_id) is not None
        for name in ("rounds", "deliveries"):
            resume(caller, name)
    assert (Bell.ROUND, round_id) not in rung


def test_more_than_a_batch_is_left_to_the_next_ticks_without_waiting(
    admin: Callable[..., Caller], rung: list[tuple[Bell, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(due, "BATCH", 2)
    operators = some_operators(1)
    for _ in range(5):
        move_clock_to(a_round(operators), "seal_at")
    with transaction() as session:
        session.execute(text("UPDATE rounds SET ring_at = now() + interval '5 seconds'"))
        session.execute(text("UPDATE deliveries SET due_at = NULL"))
    rung.clear()
    caller = admin("oncall")
    pause(caller, "rounds")
    resume(caller, "rounds")
    assert len(rung) == 2
    due.ring_due()
    due.ring_due()
    assert len({row for _, row in rung}) == len(rung) == 5


def test_who_paused_and_why_is_shown_and_on_record(admin: Callable[..., Caller]) -> None:
    caller = admin("oncall")
    paused = pause(caller, "rounds")
    assert paused["pausedBy"].startswith("oncall (")
    assert paused["reason"] == "receiver on fire"
    refused = caller.post(f"{PATH}/rounds/pause", {"reason": "me too"})
    assert "receiver on fire" in assert_error(refused, 409, "wrong_state")["error"]
    resume(caller, "rounds")
    assert_error(caller.post(f"{PATH}/rounds/resume", {"reason": "x"}), 409, "wrong_state")
    assert rows("SELECT action, subject, reason FROM audit_log ORDER BY id") == [
        ("queue.pause", "rounds", "receiver on fire"),
        ("queue.resume", "rounds", "fire is out"),
    ]


def test_only_queues_there_are_and_only_who_is_on_call(admin: Callable[..., Caller]) -> None:
    caller = admin("oncall")
    for act in ("pause", "resume"):
        assert "deliveries, rounds" in assert_error(caller.post(f"{PATH}/lunch/{act}", {"reason": "x"}), 404)["error"]
        assert "reason" in assert_error(caller.post(f"{PATH}/rounds/{act}", {}), 422)["details"]
    for role in ("reviewer", "treasurer"):
        assert_error(admin(role).get(PATH), 403, "wrong_role")
        assert_error(admin(role).post(f"{PATH}/rounds/pause", {"reason": "x"}), 403, "wrong_role")


def test_of_pauses_at_once_one_does_it(application: Any, admin: Callable[..., Caller]) -> None:
    import threading
    from concurrent.futures import ThreadPoolExecutor

    headers, together = admin().headers, threading.Barrier(6)

    def attempt(_: int) -> int:
        together.wait()
        return application.test_client().post(f"{PATH}/rounds/pause", json={"reason": "x"}, headers=headers).status_code

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(attempt, range(6))) == [200, 409, 409, 409, 409, 409]
    assert rows("SELECT count(*) FROM audit_log") == [(1,)]
