"""Looking after operators: who may read and change them, and what a new API key ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import event, text

from models.session import engine, transaction
from tests.app.conftest import Caller, assert_error
from tests.factories import rows

PATH = "/api/admin/operators"


def rotate(caller: Caller, overlap: int) -> dict[str, Any]:
    answer = caller.post(f"{PATH}/op_a/rotate-key", {"overlapSeconds": overlap, "reason": "yearly"})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.get_json()
    return body


def with_key(caller: Caller, key: str) -> Caller:
    return Caller(caller.client, {"X-Service-Key": key}, caller.id)


def login(caller: Caller) -> dict[str, Any]:
    answer = caller.post("/api/auth/operator/login", {"apiKey": caller.headers["X-Service-Key"]})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.get_json()
    return body


def me_status(caller: Caller, **headers: str) -> int:
    return caller.client.get("/api/operator/me", headers=headers or caller.headers).status_code


def end_overlap() -> None:
    """Move the clock to the end of the overlap."""
    with transaction() as session:
        session.execute(text("UPDATE operator_api_keys SET expires_at = now() WHERE expires_at IS NOT NULL"))


def test_both_keys_work_during_the_overlap_and_the_old_one_ends_with_it(
    operator: Callable[[], Caller], admin: Callable[[], Caller]
) -> None:
    old, root = operator(), admin()
    made = rotate(root, 3_600)
    new = with_key(old, made["apiKey"])
    assert (me_status(old), me_status(new)) == (200, 200)
    keys = root.get(f"{PATH}/op_a").get_json()["apiKeys"]
    assert [key["expiresAt"] for key in keys] == [None, made["previousKeyExpiresAt"]]
    assert keys[0]["keyId"] == made["apiKey"].split("_")[1]
    end_overlap()
    assert (me_status(old), me_status(new)) == (401, 200)


def test_webhooks_are_signed_with_the_newest_key_at_once(
    operator: Callable[[], Caller], admin: Callable[[], Caller]
) -> None:
    from models.credentials import signing_key

    operator()
    made = rotate(admin(), 604_800)
    with transaction() as session:
        assert signing_key(session, "op_a") == made["apiKey"]


def test_without_an_overlap_the_old_key_and_all_that_was_made_with_it_end_at_once(
    operator: Callable[[], Caller], admin: Callable[[], Caller]
) -> None:
    old = operator()
    tokens = login(old)
    bearer = {"Authorization": f"Bearer {tokens['accessToken']}"}
    assert me_status(old, **bearer) == 200
    new = with_key(old, rotate(admin(), 0)["apiKey"])
    assert_error(old.get("/api/operator/me"), 401)
    assert_error(old.client.get("/api/operator/me", headers=bearer), 401, "invalid_token")
    assert_error(old.post("/api/auth/refresh", {"refreshToken": tokens["refreshToken"]}), 401, "invalid_token")
    assert_error(old.post("/api/auth/operator/login", {"apiKey": old.headers["X-Service-Key"]}), 401)
    assert me_status(new, Authorization=f"Bearer {login(new)['accessToken']}") == 200


def test_tokens_live_through_the_overlap(operator: Callable[[], Caller], admin: Callable[[], Caller]) -> None:
    old = operator()
    tokens = login(old)
    rotate(admin(), 60)
    refreshed = old.post("/api/auth/refresh", {"refreshToken": tokens["refreshToken"]}).get_json()
    bearer = {"Authorization": f"Bearer {refreshed['accessToken']}"}
    assert me_status(old, **bearer) == 200
    end_overlap()
    assert me_status(old, **bearer) == 401
    assert_error(old.post("/api/auth/refresh", {"refreshToken": refreshed["refreshToken"]}), 401, "invalid_token")


def test_a_second_rotation_never_gives_an_ending_key_more_time(
    operator: Callable[[], Caller], admin: Callable[[], Caller]
) -> None:
    operator()
    root = admin()
    first = rotate(root, 60)["previousKeyExpiresAt"]
    rotate(root, 3_600)
    ends = [key["expiresAt"] for key in root.get(f"{PATH}/op_a").get_json()["apiKeys"]]
    assert ends[0] is None
    assert ends[1] > first == ends[2]


@pytest.mark.parametrize("overlap", [-1, 604_801, 1.5, "60", None, True])
def test_an_overlap_is_a_number_of_seconds_up_to_a_week(
    operator: Callable[[], Caller], admin: Callable[[], Caller], overlap: object
) -> None:
    operator()
    answer = admin().post(f"{PATH}/op_a/rotate-key", {"overlapSeconds": overlap})
    assert "overlapSeconds" in assert_error(answer, 422)["details"]
    assert rows("SELECT count(*) FROM operator_api_keys") == [(1,)]


def test_a_suspended_operator_is_refused_until_it_is_let_in_again(
    operator: Callable[[], Caller], admin: Callable[[], Caller]
) -> None:
    caller, root = operator(), admin()
    caller.post("/api/operator/heartbeat")
    refresh = login(caller)["refreshToken"]
    suspended = root.patch(f"{PATH}/op_a", {"active": False, "reason": "licence withdrawn"})
    assert suspended.get_json()["active"] is False
    assert_error(caller.get("/api/operator/me"), 403, "suspended")
    assert_error(caller.post("/api/auth/refresh", {"refreshToken": refresh}), 403, "suspended")
    assert rows("SELECT due_at FROM operators") == [(None,)]
    root.patch(f"{PATH}/op_a", {"active": False, "reason": "again"})
    assert root.patch(f"{PATH}/op_a", {"active": True, "reason": "renewed"}).get_json()["active"] is True
    assert caller.get("/api/operator/me").status_code == 200
    assert rows("SELECT action, subject, reason FROM audit_log ORDER BY id") == [
        ("operator.suspend", "op_a", "licence withdrawn"),
        ("operator.reinstate", "op_a", "renewed"),
    ]


def test_the_new_key_is_nowhere_in_the_audit_log(operator: Callable[[], Caller], admin: Callable[[], Caller]) -> None:
    operator()
    made = rotate(admin(), 60)
    [(actor, action, reason, logged)] = rows("SELECT actor, action, reason, details::text FROM audit_log")
    assert actor.startswith("root (")
    assert (action, reason) == ("operator.rotate_key", "yearly")
    assert made["apiKey"].split("_")[2] not in logged


def test_operators_are_listed_page_by_page_with_their_balances_in_few_queries(
    operator: Callable[..., Caller], admin: Callable[[str], Caller]
) -> None:
    for name, funds in (("a", 0), ("b", 5), ("c", 7)):
        operator(name, funds)
    caller = admin("oncall")
    asked: list[str] = []
    event.listen(engine(), "before_cursor_execute", lambda _c, _cur, sql, *_: asked.append(sql))
    listed = caller.get(f"{PATH}?limit=2&offset=1").get_json()
    assert len(asked) == 2  # the admin's key, the page
    assert [(row["operatorId"], row["balanceUsdc"]) for row in listed["operators"]] == [("op_b", "5"), ("op_c", "7")]
    assert listed["count"] == 2
    assert_error(caller.get(f"{PATH}?limit=0"), 422)


def test_who_may_do_what(operator: Callable[[], Caller], admin: Callable[[str], Caller]) -> None:
    operator()
    for role, reads in (("reviewer", 200), ("oncall", 200), ("treasurer", 403)):
        caller = admin(role)
        assert caller.get(PATH).status_code == caller.get(f"{PATH}/op_a").status_code == reads
        assert_error(caller.patch(f"{PATH}/op_a", {"active": False, "reason": "x"}), 403, "wrong_role")
        assert_error(caller.post(f"{PATH}/op_a/rotate-key", {"overlapSeconds": 0}), 403, "wrong_role")
    root = admin("root")
    assert_error(root.get(f"{PATH}/op_x"), 404)
    assert_error(root.patch(f"{PATH}/op_x", {"active": False, "reason": "x"}), 404)
    assert_error(root.post(f"{PATH}/op_x/rotate-key", {"overlapSeconds": 0}), 404)
    assert "reason" in assert_error(root.patch(f"{PATH}/op_a", {"active": False}), 422)["details"]


def test_of_two_rotations_at_once_one_key_is_left(house: None) -> None:
    import threading
    from concurrent.futures import ThreadPoolExecutor

    from app.desk.operators import rotate_key
    from tests.factories import an_operator

    an_operator("a")
    together = threading.Barrier(6)

    def attempt(_: int) -> None:
        together.wait()
        with transaction() as session:
            rotate_key(session, "somebody", "op_a", 0, None)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(attempt, range(6)))
    assert rows("SELECT count(*) FROM operator_api_keys WHERE expires_at IS NULL") == [(1,)]
