"""Trying out a receiver: samples that take the whole way of real webhooks, and the log of what came of them."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import socket
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from app.resources.webhook_samples import SAMPLE_ROUND, samples
from models.operators import record_heartbeat
from models.session import transaction
from models.settings import settings
from protocol.lifecycle import State
from protocol.webhook import EVENTS
from tasks.deliveries import SenderThread
from tasks.heartbeats import check_heartbeat
from tests.app.conftest import Caller, assert_error
from tests.factories import a_round, an_operator, move_clock_to, rows, take_part, take_to, work
from tests.receiver import Receiver

Operators = Callable[..., Caller]


@pytest.fixture
def a_worker(house: None) -> Iterator[None]:
    """Deliver what is due, for as long as the test runs, as a worker does."""
    over, worker = threading.Event(), SenderThread()

    def ring() -> None:
        while not over.wait(0.01):
            worker.wake()

    bells = threading.Thread(target=ring)
    worker.after_worker_boot(None, None)
    bells.start()
    yield
    over.set()
    bells.join()
    worker.before_worker_shutdown(None, None)
    worker.after_worker_shutdown(None, None)


def registered(operator: Operators, receiver: Receiver) -> Caller:
    caller = operator()
    assert caller.put("/api/operator/webhook", {"url": receiver.url}).status_code == 200
    return caller


@pytest.mark.usefixtures("a_worker")
def test_a_sample_arrives_signed_as_a_real_one(operator: Operators, receiver: Receiver) -> None:
    caller = registered(operator, receiver)
    answer = caller.post("/api/operator/test-webhook", {"eventType": "round.drawn"}).get_json()
    hint = answer.pop("hint")
    assert answer == {"success": True, "delivery": {"event": "round.drawn", "status": "delivered", "statusCode": 200}}
    [(headers, body)] = receiver.requests
    assert headers["X-Service-Delivery"] in hint
    key = caller.headers["X-Service-Key"]
    assert headers["X-Service-Signature"] == hmac.new(key.encode(), body, hashlib.sha256).hexdigest()
    sent = json.loads(body)
    assert (sent["event"], sent["roundId"], sent["data"]["roundId"]) == ("round.drawn", SAMPLE_ROUND, SAMPLE_ROUND)


@pytest.mark.usefixtures("a_worker")
@pytest.mark.parametrize(("status", "hint"), [(500, "answered 500; only 200"), (301, "redirects")])
def test_the_result_is_the_receivers_own(operator: Operators, receiver: Receiver, status: int, hint: str) -> None:
    caller = registered(operator, receiver)
    receiver.answers = [(status, {"Location": receiver.url})] * 3
    answer = caller.post("/api/operator/test-webhook", {"eventType": "round.sealed"}).get_json()
    assert answer["success"] is False
    assert answer["delivery"] == {"event": "round.sealed", "status": "failed", "statusCode": status}
    assert hint in answer["hint"]
    assert len(receiver.requests) == 3


@pytest.mark.usefixtures("a_worker")
def test_a_receiver_that_is_not_there_is_told_apart_from_one_that_does_not_speak_http(operator: Operators) -> None:
    caller = operator()
    with socket.create_server(("127.0.0.1", 0)) as server:
        mumbling = threading.Thread(target=_mumble, args=(server,))
        mumbling.start()
        caller.put("/api/operator/webhook", {"url": f"http://127.0.0.1:{server.getsockname()[1]}/"})
        mumbled = caller.post("/api/operator/test-webhook", {"eventType": "round.sealed"}).get_json()["hint"]
        server.shutdown(socket.SHUT_RDWR)
        mumbling.join()
    gone = caller.post("/api/operator/test-webhook", {"eventType": "round.sealed"}).get_json()["hint"]
    assert "no whole HTTP answer: the answer is not HTTP/1.1. Look for" in mumbled
    assert "cannot be reached: " in gone
    [last, first] = caller.get("/api/operator/webhook-logs").get_json()["logs"]
    assert {attempt["errorClass"] for attempt in first["attempts"]} == {"bad_response"}
    assert {(attempt["peer"], attempt["connectionReused"]) for attempt in last["attempts"]} == {("127.0.0.1", False)}
    assert all(attempt["detail"] in gone for attempt in last["attempts"])


def _mumble(server: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(b"hm?\r\n\r\n")


@pytest.mark.usefixtures("a_worker")
def test_all_events_are_sent_and_logged_newest_first(operator: Operators, receiver: Receiver) -> None:
    caller = registered(operator, receiver)
    receiver.answers = [(503, {})]
    answer = caller.post("/api/operator/test-webhook/all").get_json()
    assert (answer["success"], answer["count"]) == (True, 14)
    assert [each["event"] for each in answer["deliveries"]] == list(EVENTS)
    assert sorted({json.loads(body)["event"] for _, body in receiver.requests}) == sorted(EVENTS)

    page = caller.get("/api/operator/webhook-logs?limit=14").get_json()
    assert page["count"] == 14
    ids = {headers["X-Service-Delivery"] for headers, _ in receiver.requests}
    assert {entry["deliveryId"] for entry in page["logs"]} == ids
    [twice] = [entry for entry in page["logs"] if len(entry["attempts"]) == 2]
    assert [attempt["statusCode"] for attempt in twice["attempts"]] == [503, 200]
    assert [attempt["errorClass"] for attempt in twice["attempts"]] == ["status_5xx", None]
    assert (twice["status"], twice["nextAttemptAt"]) == ("delivered", None)
    first, second = (caller.get(f"/api/operator/webhook-logs?limit=7&offset={at}").get_json()["logs"] for at in (0, 7))
    assert first + second == page["logs"]


def test_nobody_sees_another_operators_log(operator: Operators) -> None:
    operator("a")
    a_round(["op_a"])
    stranger = operator("b")
    assert stranger.get("/api/operator/webhook-logs").get_json() == {"logs": [], "count": 0}


def test_without_a_worker_it_says_so(operator: Operators, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    caller = registered(operator, receiver)
    monkeypatch.setenv("WEBHOOK_TIMEOUT_SECONDS", "0.1")
    monkeypatch.setattr("app.operator.sandbox.MARGIN_SECONDS", 0.1)
    settings.cache_clear()
    answer = caller.post("/api/operator/test-webhook", {"eventType": "round.closed"}).get_json()
    assert answer["delivery"] == {"event": "round.closed", "status": "pending", "statusCode": None}
    assert "No worker" in answer["hint"]


def test_what_cannot_be_sent_writes_nothing(operator: Operators) -> None:
    caller = operator()
    assert_error(caller.post("/api/operator/test-webhook", {"eventType": "round.closed"}), 409, "no_webhook")
    assert_error(caller.post("/api/operator/test-webhook/all"), 409, "no_webhook")
    assert_error(caller.post("/api/operator/test-webhook", {"eventType": "round.lost"}), 422, "invalid")
    assert rows("SELECT count(*) FROM deliveries") == [(0,)]


def test_outside_the_sandbox_there_is_none_of_this(operator: Operators, monkeypatch: pytest.MonkeyPatch) -> None:
    caller = operator()
    monkeypatch.setenv("SANDBOX", "0")
    settings.cache_clear()
    assert_error(caller.post("/api/operator/test-webhook", {"eventType": "round.closed"}), 404, "not_found")
    assert_error(caller.post("/api/operator/test-webhook/all"), 404, "not_found")
    assert_error(caller.get("/api/operator/webhook-logs"), 404, "not_found")


@pytest.mark.usefixtures("generous")
def test_samples_have_the_fields_and_types_of_real_events() -> None:
    sellers = [an_operator("a"), an_operator("b"), an_operator("c", funds=0)]
    played, empty = a_round(sellers), a_round(sellers)
    take_part(played, sellers, 40)
    move_clock_to(played, "escrow_deadline")
    work(played)
    take_to(played, State.CLOSED)
    move_clock_to(empty, "seal_at")
    work(empty)
    with transaction() as session:
        record_heartbeat(session, "op_a")
    rows("UPDATE operators SET due_at = now() WHERE id = 'op_a' RETURNING id")
    assert check_heartbeat("op_a") is True

    real = {event: json.loads(bytes(body)) for event, body in rows("SELECT event, body FROM deliveries")}
    made_up = samples("op_a", datetime.now(UTC))
    assert list(made_up) == list(EVENTS)
    assert sorted(real) == sorted(EVENTS)
    for event, (round_id, data) in made_up.items():
        told = real[event]
        assert {name: type(value) for name, value in data.items()} == {
            name: type(value) for name, value in told["data"].items()
        }, event
        assert type(round_id) is type(told["roundId"]), event
