"""Webhook endpoints: how each is doing, one held up without a loss, and one tried again at once."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import text

from models.credentials import issue_api_key
from models.deliveries import announce
from models.endpoints import BREAKER_FAILURES, Health, note_health
from models.leases import Lane, lease_some
from models.session import transaction
from models.settings import settings
from tasks import bell
from tasks.bell import Bell
from tasks.sender import deliver_due
from tests.app.conftest import Caller, assert_error
from tests.factories import an_operator, rows, some_operators
from tests.receiver import Receiver, receiving

PATH = "/api/admin/endpoints"


@pytest.fixture
def rung(monkeypatch: pytest.MonkeyPatch) -> list[Bell]:
    heard: list[Bell] = []
    monkeypatch.setattr(bell, "ring", lambda which, row_id=None: bool(heard.append(which)) or True)
    return heard


@pytest.fixture
def long_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breakers stay open and retries wait as long as in earnest."""
    monkeypatch.setenv("WEBHOOK_BREAKER_SECONDS", "30")
    monkeypatch.setenv("WEBHOOK_BASE_SECONDS", "30")
    settings.cache_clear()


def failing(operator_id: str, failures: int) -> None:
    with transaction() as session:
        note_health(session, {operator_id: Health(recovered=False, failures=failures)})


def listening(receiver: Receiver) -> None:
    """Every operator has this receiver, and a key that signs."""
    with transaction() as session:
        session.execute(text("UPDATE operators SET webhook_url = :url"), {"url": receiver.url})
        for (operator_id,) in session.execute(text("SELECT id FROM operators")):
            issue_api_key(session, operator_id)


def announced(*operator_ids: str) -> None:
    with transaction() as session:
        announce(session, "round.sealed", operator_ids, None, {"sealedCount": 3})


def states(caller: Caller, query: str = "") -> dict[str, str]:
    return {one["operatorId"]: one["state"] for one in caller.get(PATH + query).get_json()["endpoints"]}


@pytest.mark.usefixtures("long_breaks")
def test_every_endpoint_is_listed_with_how_it_is_doing_and_what_waits(admin: Callable[..., Caller]) -> None:
    a, b, c, d = some_operators(4)
    with transaction() as session:
        url = "https://a.example/hook?token=s3cret"
        session.execute(text("UPDATE operators SET webhook_url = :url WHERE id = :a"), {"a": a, "url": url})
        announce(session, "round.sealed", [a, a, a], None, {})
        session.execute(text("UPDATE deliveries SET due_at = due_at - interval '90 seconds'"))
    with transaction() as session:
        lease_some(session, Lane.FAST, 1, 60)
    caller = admin("oncall")
    failing(b, BREAKER_FAILURES), failing(c, 2)
    paused = caller.post(f"{PATH}/{d}/pause", {"reason": "on their wish"}).get_json()
    assert states(caller) == {a: "healthy", b: "open", c: "failing", d: "paused"}
    for operator_id, state in states(caller).items():
        assert states(caller, f"?state={state}") == {operator_id: state}
    first, second, third, fourth = caller.get(PATH).get_json()["endpoints"]
    assert first["url"] == "https://a.example/hook?[redacted]"
    assert (first["waiting"], first["inFlight"], first["failures"]) == (2, 1, 0)
    assert 90 <= first["oldestDueSeconds"] < 600
    assert (second["failures"], second["openUntil"] is not None, second["url"]) == (BREAKER_FAILURES, True, None)
    assert (third["failures"], third["openUntil"], third["oldestDueSeconds"]) == (2, None, None)
    assert fourth == paused
    assert (fourth["reason"], fourth["pausedBy"].startswith("oncall (")) == ("on their wish", True)


def test_pages_hold_every_endpoint_once(admin: Callable[..., Caller]) -> None:
    operators, caller = some_operators(5), admin("oncall")
    seen, cursor = [], ""
    while cursor is not None:
        page = caller.get(f"{PATH}?limit=2{cursor and f'&cursor={cursor}'}").get_json()
        seen += [one["operatorId"] for one in page["endpoints"]]
        cursor = page["nextCursor"]
    assert seen == operators
    for wrong in ("cursor=WyJhIGIiXQ", "cursor=WzFd", "cursor=WyJcdTAwMDAiXQ", "state=lost", "limit=0", "offset=1"):
        assert_error(caller.get(f"{PATH}?{wrong}"), 422)


def test_what_waits_at_a_paused_endpoint_keeps_its_age_and_its_attempts_and_goes_out_after_the_resume(
    admin: Callable[..., Caller], receiver: Receiver, rung: list[Bell]
) -> None:
    operators = some_operators(2)
    listening(receiver)
    caller = admin("oncall")
    caller.post(f"{PATH}/op_a/pause", {"reason": "x"})
    announced(*operators)
    before = rows("SELECT * FROM deliveries WHERE operator_id = 'op_a'")
    assert deliver_due() == 1
    assert rows("SELECT * FROM deliveries WHERE operator_id = 'op_a'") == before
    rung.clear()
    assert caller.post(f"{PATH}/op_a/resume", {"reason": "y"}).get_json()["state"] == "healthy"
    assert rung == [Bell.DELIVERIES]
    assert deliver_due() == 1
    assert rows("SELECT status, attempts FROM deliveries") == [("delivered", 1)] * 2


@pytest.mark.usefixtures("long_breaks")
def test_a_resume_closes_the_breaker_and_tries_it_now(
    admin: Callable[..., Caller], receiver: Receiver, rung: list[Bell]
) -> None:
    an_operator("a")
    listening(receiver)
    announced("op_a")
    failing("op_a", BREAKER_FAILURES)
    assert deliver_due() == 0
    answer = admin("oncall").post(f"{PATH}/op_a/resume", {"reason": "they say it is up"}).get_json()
    assert (answer["state"], answer["failures"], answer["openUntil"]) == ("healthy", 0, None)
    assert rung == [Bell.DELIVERIES]
    assert deliver_due() == len(receiver.requests) == 1
    assert rows("SELECT action, subject, reason, details FROM audit_log WHERE action LIKE 'endpoint%'") == [
        ("endpoint.resume", "op_a", "they say it is up", {"state": "open", "failures": BREAKER_FAILURES})
    ]


def test_it_is_paused_and_resumed_once_and_on_record(admin: Callable[..., Caller]) -> None:
    an_operator("a")
    caller = admin("oncall")
    caller.post(f"{PATH}/op_a/pause", {"reason": "it answers twice"})
    refused = assert_error(caller.post(f"{PATH}/op_a/pause", {"reason": "me too"}), 409, "wrong_state")
    assert "it answers twice" in refused["error"]
    caller.post(f"{PATH}/op_a/resume", {"reason": "mended"})
    assert_error(caller.post(f"{PATH}/op_a/resume", {"reason": "mended"}), 409, "wrong_state")
    assert rows("SELECT action, subject, reason FROM audit_log WHERE action LIKE 'endpoint%' ORDER BY id") == [
        ("endpoint.pause", "op_a", "it answers twice"),
        ("endpoint.resume", "op_a", "mended"),
    ]


def test_only_operators_there_are_and_only_who_is_on_call(admin: Callable[..., Caller]) -> None:
    an_operator("a")
    for act in ("pause", "resume"):
        for unknown in ("op_x", "%00", "a b", "é"):
            assert_error(admin("oncall").post(f"{PATH}/{unknown}/{act}", {"reason": "x"}), 404)
        assert "reason" in assert_error(admin("oncall").post(f"{PATH}/op_a/{act}", {}), 422)["details"]
        for role in ("reviewer", "treasurer"):
            assert_error(admin(role).post(f"{PATH}/op_a/{act}", {"reason": "x"}), 403, "wrong_role")
            assert_error(admin(role).get(PATH), 403, "wrong_role")


@pytest.mark.usefixtures("long_breaks")
def test_the_rest_of_the_attempts_goes_to_a_new_address_at_once_signed_with_a_new_key(
    operator: Callable[..., Caller], admin: Callable[..., Caller], receiver: Receiver, rung: list[Bell]
) -> None:
    caller = operator("a")
    receiver.answers = [(500, {})] * 9
    caller.put("/api/operator/webhook", {"url": receiver.url})
    announced("op_a")
    assert deliver_due() == 1
    failing("op_a", BREAKER_FAILURES)
    now_due("op_a")
    assert deliver_due() == 0
    with receiving() as other:
        rung.clear()
        assert caller.put("/api/operator/webhook", {"url": other.url}).status_code == 200
        assert rung == [Bell.DELIVERIES]
        other.answers = [(401, {}), (200, {})]
        assert deliver_due() == 1
        failing("op_a", BREAKER_FAILURES)
        now_due("op_a")
        assert deliver_due() == 0
        rung.clear()
        key = rotated(admin())
        assert rung == [Bell.DELIVERIES]
        assert deliver_due() == 1
        _, (headers, body) = other.requests
        assert headers["X-Service-Signature"] == hmac.new(key.encode(), body, hashlib.sha256).hexdigest()
    assert len(receiver.requests) == 1
    assert rows("SELECT status, attempts FROM deliveries") == [("delivered", 3)]


def now_due(operator_id: str) -> None:
    with transaction() as session:
        session.execute(text("UPDATE deliveries SET due_at = now() WHERE operator_id = :o"), {"o": operator_id})


def rotated(caller: Caller) -> str:
    body: dict[str, Any] = caller.post(
        "/api/admin/operators/op_a/rotate-key", {"overlapSeconds": 60, "reason": "yearly"}
    ).get_json()
    return str(body["apiKey"])
