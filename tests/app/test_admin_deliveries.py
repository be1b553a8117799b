"""Deliveries for whoever is on call: found, looked into, queued again once."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import event, text

from models.deliveries import DeliveryAttempt, announce
from models.session import database_now, engine, transaction
from tests.app.conftest import Caller, assert_error
from tests.factories import a_round, an_operator, rows, some_operators

PATH = "/api/admin/deliveries"


def deliveries(count: int, operator_id: str, status: str = "failed", error_class: str | None = "timeout") -> list[str]:
    """So many deliveries in this state, oldest first; failed ones after three attempts."""
    attempts = 3 if status == "failed" else 1 if status == "delivered" else 0
    with transaction() as session:
        made = [announce(session, "round.sealed", [operator_id], None, {"n": n})[0] for n in range(count)]
        now = database_now(session)
        for delivery_id in made:
            for number in range(1, attempts + 1):
                session.add(
                    DeliveryAttempt(
                        delivery_id=delivery_id,
                        number=number,
                        started_at=now,
                        duration_ms=12,
                        url="http://127.0.0.1:9/hook",
                        error_class=error_class if status == "failed" else None,
                        status_code=None if status == "failed" else 200,
                    )
                )
        if status != "pending":
            session.execute(
                text(
                    "UPDATE deliveries SET status = :status, attempts = :attempts, due_at = NULL, "
                    "finished_at = clock_timestamp(), error_class = :error WHERE id = ANY(:ids)"
                ),
                {"status": status, "attempts": attempts, "error": error_class, "ids": made},
            )
    return [str(delivery_id) for delivery_id in made]


def pages(caller: Caller, query: str) -> list[list[str]]:
    """Every page of a search, by the ids on it."""
    found, cursor = [], ""
    while True:
        answer = caller.get(f"{PATH}?{query}{cursor}").get_json()
        assert answer["count"] == len(answer["deliveries"])
        found.append([row["deliveryId"] for row in answer["deliveries"]])
        if answer["nextCursor"] is None:
            return found
        cursor = f"&cursor={answer['nextCursor']}"


def test_pages_hold_every_delivery_once_newest_first_whatever_is_written_meanwhile(
    admin: Callable[..., Caller],
) -> None:
    written = deliveries(7, an_operator("a"))
    caller = admin()
    first = caller.get(f"{PATH}?limit=3").get_json()
    deliveries(2, "op_a")
    second = caller.get(f"{PATH}?limit=3&cursor={first['nextCursor']}").get_json()
    third = caller.get(f"{PATH}?limit=3&cursor={second['nextCursor']}").get_json()
    seen = [row["deliveryId"] for page in (first, second, third) for row in page["deliveries"]]
    assert seen == written[::-1]
    assert third["nextCursor"] is None


def test_deliveries_of_one_moment_are_paged_without_loss(admin: Callable[..., Caller]) -> None:
    written = deliveries(5, an_operator("a"))
    with transaction() as session:
        session.execute(text("UPDATE deliveries SET created_at = now()"))
    seen = [row for page in pages(admin(), "limit=2") for row in page]
    assert sorted(seen) == sorted(written)
    assert seen == sorted(written, key=UUID, reverse=True)


def test_a_page_takes_the_same_two_queries_however_long_it_is(admin: Callable[..., Caller]) -> None:
    deliveries(30, an_operator("a"))
    caller, asked = admin(), []
    event.listen(engine(), "before_cursor_execute", lambda _c, _cur, sql, *_: asked.append(sql))
    assert caller.get(f"{PATH}?limit=30").get_json()["count"] == 30
    assert len(asked) == 2  # the admin's key, the page


def test_each_filter_narrows_the_search(admin: Callable[..., Caller]) -> None:
    a, b = some_operators(2)
    failed, refused = deliveries(1, a), deliveries(1, b, error_class="connect")
    done, waiting = deliveries(1, b, "delivered", None), deliveries(1, a, "pending", None)
    round_id = a_round([b])
    caller = admin("oncall")
    opened = [row["deliveryId"] for row in caller.get(f"{PATH}?roundId={round_id}").get_json()["deliveries"]]
    [(since,)] = rows(
        "SELECT to_char(created_at, :f) FROM deliveries WHERE id = :d", d=done[0], f='YYYY-MM-DD"T"HH24:MI:SS.US"Z"'
    )
    for query, expected in {
        "status=failed": [*refused, *failed],
        "status=pending": [*opened, *waiting],
        f"operatorId={a}": [*waiting, *failed],
        f"operatorId={a}&status=failed": failed,
        "event=round.opened": opened,
        "errorClass=connect": refused,
        f"since={since}": [*opened, *waiting, *done],
        f"until={since}": [*refused, *failed],
        "operatorId=op_x": [],
    }.items():
        assert pages(caller, query) == [expected], query


@pytest.mark.parametrize(
    "query",
    [
        *("status=lost", "operatorId=a b", "roundId=0", "roundId=x", "event=round.lost", "errorClass=bad luck"),
        *("since=yesterday", "until=2026-01-01", "limit=0", "limit=201", "offset=1", "cursor=", "cursor=abc"),
        *("cursor=é", "cursor=bnVsbA", "cursor=WzEsMl0", "cursor=W10"),
    ],
)
def test_what_is_no_filter_is_refused(admin: Callable[..., Caller], query: str) -> None:
    assert_error(admin().get(f"{PATH}?{query}"), 422, "invalid")


@pytest.mark.parametrize(
    "place", ['["2026-01-01T00:00:00", "x"]', '["9999999"]', "[" * 5_000, '["2026-01-01T00:00:00+00:00"]', "7"]
)
def test_a_cursor_somebody_made_up_is_refused(admin: Callable[..., Caller], place: str) -> None:
    made_up = base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")
    assert "cursor" in assert_error(admin().get(f"{PATH}?cursor={made_up}"), 422)["details"]


def test_a_delivery_is_shown_with_what_was_sent_and_every_attempt(admin: Callable[..., Caller]) -> None:
    [delivery] = deliveries(1, an_operator("a"))
    shown = admin("oncall").get(f"{PATH}/{delivery}").get_json()
    assert shown["body"] == bytes(rows("SELECT body FROM deliveries")[0][0]).decode()
    assert [attempt["number"] for attempt in shown["attempts"]] == [1, 2, 3]
    assert shown["attempts"][0]["errorClass"] == shown["errorClass"] == "timeout"
    assert (shown["status"], shown["attemptCount"], shown["nextAttemptAt"]) == ("failed", 3, None)
    for unknown in ("x", "00000000-0000-0000-0000-000000000000"):
        assert_error(admin().get(f"{PATH}/{unknown}"), 404)


def test_a_failed_delivery_is_queued_again_with_a_fresh_budget_and_its_record_kept(
    admin: Callable[..., Caller],
) -> None:
    from tasks.sender import deliver_due

    [delivery] = deliveries(1, an_operator("a"))
    caller = admin("oncall")
    answer = caller.post(f"{PATH}/{delivery}/requeue", {"reason": "their server is back"}).get_json()
    assert (answer["status"], answer["attemptCount"], answer["attemptsBefore"]) == ("pending", 3, 3)
    assert answer["nextAttemptAt"] is not None
    assert answer["finishedAt"] is None
    for _ in range(4):
        deliver_due()
        with transaction() as session:
            session.execute(text("UPDATE deliveries SET due_at = now() WHERE due_at IS NOT NULL"))
    shown = caller.get(f"{PATH}/{delivery}").get_json()
    assert (shown["status"], shown["attemptCount"]) == ("failed", 6)
    assert [attempt["number"] for attempt in shown["attempts"]] == [1, 2, 3, 4, 5, 6]
    assert rows("SELECT action, subject, reason FROM audit_log") == [
        ("delivery.requeue", delivery, "their server is back")
    ]


@pytest.mark.parametrize("status", ["delivered", "pending"])
def test_what_is_not_failed_is_never_sent_again(admin: Callable[..., Caller], status: str) -> None:
    [delivery] = deliveries(1, an_operator("a"), status, None)
    before = rows("SELECT * FROM deliveries")
    caller = admin()
    assert_error(caller.post(f"{PATH}/{delivery}/requeue", {"reason": "x"}), 409, "wrong_state")
    assert "status" in assert_error(caller.post(f"{PATH}/requeue", {"reason": "x", "status": status}), 422)["details"]
    assert rows("SELECT * FROM deliveries") == before
    assert rows("SELECT count(*) FROM audit_log") == [(0,)]


def at_once(times: int, act: Callable[[], int]) -> int:
    together = threading.Barrier(times)

    def attempt(_: int) -> int:
        together.wait()
        return act()

    with ThreadPoolExecutor(times) as pool:
        return sum(pool.map(attempt, range(times)))


def test_of_requeues_at_once_one_does_it(application: Any, admin: Callable[..., Caller]) -> None:
    [delivery] = deliveries(1, an_operator("a"))
    headers = admin().headers

    def one() -> int:
        answer = application.test_client().post(f"{PATH}/{delivery}/requeue", json={"reason": "x"}, headers=headers)
        assert answer.status_code in (200, 409)
        return int(answer.status_code == 200)

    assert at_once(8, one) == 1
    assert rows("SELECT attempts_before, fence FROM deliveries") == [(3, 0)]
    assert rows("SELECT count(*) FROM audit_log") == [(1,)]


def test_only_who_is_on_call_sees_and_touches_deliveries(admin: Callable[[str], Caller]) -> None:
    [delivery] = deliveries(1, an_operator("a"))
    for role in ("reviewer", "treasurer"):
        caller = admin(role)
        for answer in (
            caller.get(PATH),
            caller.get(f"{PATH}/{delivery}"),
            caller.post(f"{PATH}/{delivery}/requeue", {"reason": "x"}),
        ):
            assert_error(answer, 403, "wrong_role")
    oncall = admin("oncall")
    for body in ({}, {"reason": ""}, {"reason": " "}, {"reason": 1}):
        assert "reason" in assert_error(oncall.post(f"{PATH}/{delivery}/requeue", body), 422)["details"]


@pytest.mark.parametrize(
    "moment",
    [
        "8214-10-09T11:36:15.6888+19:23",
        "2026-01-31T20:00:00-23:59",
        "2026-01-31T20:00:00+23:59:59.999999",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59.999999Z",
    ],
)
def test_a_moment_may_have_any_offset_there_is(admin: Callable[[], Caller], moment: str) -> None:
    filters = {"since": moment, "until": moment}
    assert admin().get(PATH, query_string=filters).get_json()["count"] == 0
    assert admin().post(f"{PATH}/requeue", {"reason": "why", "dryRun": True, **filters}).get_json()["matched"] == 0


@pytest.mark.parametrize(
    "moment",
    [
        *("0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "10000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"),
        *("2026-01-31T20:00:00", "2026-01-31", "2026-01-31T20:00:00+24:00", "2026-02-30T20:00:00Z", "now", "infinity"),
    ],
)
def test_a_moment_beyond_the_calendar_is_refused(admin: Callable[[], Caller], moment: str) -> None:
    details = assert_error(admin().get(PATH, query_string={"since": moment}), 422)["details"]
    assert list(details) == ["since"]
