"""Bulk re-queues over the admin API: looked at before, begun on purpose, watched, cancelled, and on record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import text

from models.session import transaction
from models.settings import settings
from tasks import bell
from tasks.bell import Bell
from tasks.requeueing import requeue_batch
from tests.app.conftest import Caller, assert_error
from tests.app.test_admin_deliveries import deliveries
from tests.factories import a_round, an_operator, rows, some_operators
from tests.requeues import a_beat, failed, queued, work_off

PATH = "/api/admin/deliveries/requeue"
JOBS = "/api/admin/requeues"


def begin(caller: Caller, **body: Any) -> dict[str, Any]:
    answer = caller.post(PATH, {"reason": "outage over", **body})
    assert answer.status_code == 202, answer.text
    begun: dict[str, Any] = answer.get_json()
    return begun


def test_a_preview_counts_what_fits_and_changes_nothing(admin: Callable[..., Caller]) -> None:
    a, b = some_operators(2)
    failed(3, a), failed(2, b, "round.drawn", "dns"), deliveries(1, a, "delivered", None)
    before = rows("SELECT * FROM deliveries ORDER BY id")
    caller = admin("oncall")
    answer = caller.post(PATH, {"reason": "x", "dryRun": True})
    assert answer.status_code == 200
    assert answer.get_json() == {
        "matched": 5,
        "requeued": 0,
        "dryRun": True,
        "operators": [{"operatorId": a, "deliveries": 3}, {"operatorId": b, "deliveries": 2}],
        "events": [{"event": "round.sealed", "deliveries": 3}, {"event": "round.drawn", "deliveries": 2}],
        "errorClasses": [{"errorClass": "timeout", "deliveries": 3}, {"errorClass": "dns", "deliveries": 2}],
    }
    narrow = caller.post(PATH, {"reason": "x", "dryRun": True, "operatorId": b}).get_json()
    assert (narrow["matched"], narrow["operators"]) == (2, [{"operatorId": b, "deliveries": 2}])
    assert rows("SELECT * FROM deliveries ORDER BY id") == before
    assert rows("SELECT (SELECT count(*) FROM audit_log), (SELECT count(*) FROM requeue_jobs)") == [(0, 0)]


def test_one_is_begun_watched_and_finished(
    admin: Callable[..., Caller], monkeypatch: pytest.MonkeyPatch, application: Any
) -> None:
    monkeypatch.setenv("REQUEUE_PER_SECOND", "2")
    settings.cache_clear()
    rung: list[tuple[Bell, Any]] = []
    monkeypatch.setattr(bell, "ring", lambda which, row_id=None: bool(rung.append((which, row_id))) or True)
    a, b = some_operators(2)
    mine, _ = failed(3, a), failed(2, b)
    caller = admin("oncall")
    begun = begin(caller, operatorId=a, since="2020-01-01T00:00:00Z")
    job_id = begun["jobId"]
    assert rung == [(Bell.REQUEUE, job_id)]
    assert (begun["matched"], begun["requeued"], begun["dryRun"], begun["state"]) == (3, 0, False, "running")
    assert begun["actor"].startswith("oncall (")
    assert begun["filters"] == {
        "operatorId": a,
        "roundId": None,
        "event": None,
        "errorClass": None,
        "since": "2020-01-01T00:00:00.000Z",
        "until": None,
    }
    assert requeue_batch(job_id) == 2
    assert rung[1:] == [(Bell.DELIVERIES, None)]
    half = caller.get(f"{JOBS}/{job_id}").get_json()
    assert (half["state"], half["requeued"], half["pending"], half["finishedAt"]) == ("running", 2, 2, None)
    with transaction() as session:
        session.execute(text("UPDATE deliveries SET status = 'delivered', due_at = NULL WHERE status = 'pending'"))
    a_beat()
    work_off(job_id)
    done = caller.get(f"{JOBS}/{job_id}").get_json()
    assert (done["state"], done["requeued"], done["delivered"], done["pending"]) == ("finished", 3, 2, 1)
    assert queued() == set(mine)
    assert caller.get(JOBS).get_json() == {"requeues": [done], "count": 1, "nextCursor": None}
    filters = {"operatorId": a, "since": "2020-01-01T00:00:00+00:00"}
    numbers = {"matched": 3, "requeued": 3}
    assert rows("SELECT actor, action, subject, reason, details FROM audit_log ORDER BY id") == [
        (begun["actor"], "delivery.requeue_matching", f"re-queue {job_id}", "outage over",
         {"filters": filters, "matched": 3}),
        (begun["actor"], "delivery.requeue_finished", f"re-queue {job_id}", "outage over", numbers),
    ]  # fmt: skip


def test_without_a_filter_it_takes_somebody_who_says_all(admin: Callable[..., Caller]) -> None:
    an_operator("a")
    failed(2)
    caller = admin("oncall")
    for body in ({}, {"status": "failed"}, {"all": False}, {"operatorId": None}):
        assert "all" in assert_error(caller.post(PATH, {"reason": "x", **body}), 422)["details"]
    both = assert_error(caller.post(PATH, {"reason": "x", "all": True, "operatorId": "op_a"}), 422)
    assert both["details"]["all"] == ["There is a filter as well: operatorId."]
    assert rows("SELECT count(*) FROM requeue_jobs") == [(0,)]
    assert begin(caller, all=True)["matched"] == 2


@pytest.mark.parametrize("dry", [True, False])
def test_a_filter_that_nothing_can_fit_is_an_error(admin: Callable[..., Caller], dry: bool) -> None:
    a_round([an_operator("a")])
    caller = admin("oncall")
    for wrong in ({"operatorId": "op_x"}, {"roundId": 7}, {"status": "delivered"}, {"status": "pending"}):
        refused = assert_error(caller.post(PATH, {"reason": "x", "dryRun": dry, "roundId": 1} | wrong), 422)
        assert list(refused["details"]) == list(wrong)
    assert rows("SELECT count(*) FROM requeue_jobs") == [(0,)]


def test_one_that_has_nothing_to_do_is_finished_at_once(admin: Callable[..., Caller]) -> None:
    an_operator("a")
    begun = begin(admin("oncall"), operatorId="op_a")
    assert (begun["matched"], begun["state"]) == (0, "finished")
    assert requeue_batch(begun["jobId"]) is None


def test_the_same_request_sent_twice_queues_nothing_twice(admin: Callable[..., Caller]) -> None:
    an_operator("a")
    failed(5)
    caller = admin("oncall")
    ids = [begin(caller, operatorId="op_a")["jobId"] for _ in range(2)]
    assert [sum(work_off(job_id)) for job_id in ids] == [5, 0]
    assert [one["state"] for one in caller.get(JOBS).get_json()["requeues"]] == ["finished"] * 2
    assert rows("SELECT count(*) FROM deliveries WHERE attempts_before = 3 AND fence = 0") == [(5,)]


def test_one_is_cancelled_once_and_what_it_did_stays(
    admin: Callable[..., Caller], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUEUE_PER_SECOND", "2")
    settings.cache_clear()
    an_operator("a")
    failed(5)
    caller = admin("oncall")
    job_id = begin(caller, operatorId="op_a")["jobId"]
    requeue_batch(job_id)
    answer = caller.post(f"{JOBS}/{job_id}/cancel", {"reason": "wrong operator"}).get_json()
    assert (answer["state"], answer["requeued"], answer["pending"]) == ("cancelled", 2, 2)
    assert answer["cancelledBy"].startswith("oncall (")
    refused = caller.post(f"{JOBS}/{job_id}/cancel", {"reason": "wrong operator"})
    assert "cancelled already" in assert_error(refused, 409, "wrong_state")["error"]
    a_beat()
    assert requeue_batch(job_id) is None
    assert rows("SELECT action, reason, details FROM audit_log ORDER BY id")[1:] == [
        ("delivery.requeue_cancelled", "wrong operator", {"matched": 5, "requeued": 2})
    ]
    finished = begin(caller, operatorId="op_a", event="round.drawn")["jobId"]
    assert "finished already" in assert_error(caller.post(f"{JOBS}/{finished}/cancel", {"reason": "x"}), 409)["error"]


def test_they_are_listed_newest_first_page_by_page(admin: Callable[..., Caller]) -> None:
    an_operator("a")
    caller = admin("oncall")
    ids = [begin(caller, operatorId="op_a")["jobId"] for _ in range(5)]
    seen, cursor = [], ""
    while cursor is not None:
        page = caller.get(f"{JOBS}?limit=2{cursor and f'&cursor={cursor}'}").get_json()
        seen += [one["jobId"] for one in page["requeues"]]
        cursor = page["nextCursor"]
    assert seen == ids[::-1]


def test_what_there_is_not_and_who_may_not(admin: Callable[..., Caller]) -> None:
    caller = admin("oncall")
    for unknown in ("7", "x", "01", "9" * 18, "9" * 40):
        assert_error(caller.get(f"{JOBS}/{unknown}"), 404)
        assert_error(caller.post(f"{JOBS}/{unknown}/cancel", {"reason": "x"}), 404)
    for body in ({}, {"reason": ""}, {"reason": " "}, {"reason": 1}):
        assert "reason" in assert_error(caller.post(PATH, body), 422)["details"]
        assert "reason" in assert_error(caller.post(f"{JOBS}/7/cancel", body), 422)["details"]
    for role in ("reviewer", "treasurer"):
        for answer in (
            admin(role).get(JOBS),
            admin(role).get(f"{JOBS}/1"),
            admin(role).post(f"{JOBS}/1/cancel", {"reason": "x"}),
            admin(role).post(PATH, {"reason": "x", "all": True}),
        ):
            assert_error(answer, 403, "wrong_role")
