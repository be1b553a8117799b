"""What comes in from the coordinator: believed when it is signed, counted once, answered at once, worked on later."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from protocol.webhook import envelope, headers
from tests.player.conftest import OPERATOR_API_KEY
from tests.player.coordinating import rows

BODY = envelope("round.sealed", 7, "2026-02-01T10:00:00.000Z", {"roundId": 7, "sealedCount": 3})


def deliver(
    client: FlaskClient, delivery: str = "d-1", body: bytes = BODY, age: int = 0, **changed: Any
) -> TestResponse:
    signed = headers("round.sealed", delivery, int(time.time()) - age, body, changed.pop("key", OPERATOR_API_KEY))
    signed |= {name.replace("_", "-"): value for name, value in changed.items()}
    return client.post("/webhooks/coordinator", data=body, headers=signed)


def test_a_delivery_is_written_down_once_however_often_it_comes(client: FlaskClient) -> None:
    assert deliver(client).json == {"success": True, "new": True}
    assert deliver(client, age=100).json == {"success": True, "new": False}
    assert deliver(client).status_code == 200
    assert rows("SELECT delivery_id, event, round_id, repeats, due_at IS NOT NULL FROM webhooks") == [
        ("d-1", "round.sealed", 7, 2, True)
    ]


FORGED: list[dict[str, str]] = [
    {"key": "sk_somebody_else"},
    {"X_Service_Signature": "0" * 64},
    {"X_Service_Signature": "é"},
    {"X_Service_Signature": ""},
    {"X_Service_Delivery": "d-2"},
    {"X_Service_Delivery": "d-2", "webhook_id": "d-2"},
    {"X_Service_Delivery": ""},
    {"webhook_signature": "v1,AAAA"},
    {"webhook_timestamp": str(int(time.time()) + 60)},
    {"webhook_timestamp": "٣"},
    {"webhook_timestamp": "soon"},
    {"webhook_timestamp": "9" * 30},
]


def test_what_the_coordinator_did_not_sign_is_refused(client: FlaskClient) -> None:
    for forged in FORGED:
        answer = deliver(client, **forged)
        assert (answer.status_code, answer.json["code"]) == (401, "wrong_signature"), forged
    assert rows("SELECT * FROM webhooks") == []


def test_a_changed_body_is_refused_and_so_is_a_request_without_any_header(client: FlaskClient) -> None:
    signed = headers("round.sealed", "d-1", int(time.time()), BODY, OPERATOR_API_KEY)
    assert client.post("/webhooks/coordinator", data=BODY + b" ", headers=signed).status_code == 401
    assert client.post("/webhooks/coordinator", data=BODY).status_code == 401
    assert client.get("/webhooks/coordinator").status_code == 405


def test_a_recorded_request_is_refused_when_its_window_is_over(client: FlaskClient) -> None:
    for age in (310, -310):
        assert deliver(client, age=age).json["code"] == "stale"
    assert rows("SELECT * FROM webhooks") == []


def test_a_delivery_queued_again_days_later_is_taken_because_its_attempt_is_new(client: FlaskClient) -> None:
    old = envelope("round.drawn", 7, "2020-01-01T10:00:00.000Z", {"roundId": 7})
    assert deliver(client, body=old).status_code == 200


def test_while_a_key_is_replaced_either_is_believed(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    from player.settings import settings

    monkeypatch.setenv("OPERATOR_API_KEY_PREVIOUS", "sk_old")
    settings.cache_clear()
    assert deliver(client, key="sk_old").status_code == 200
    assert deliver(client, "d-2").status_code == 200
    assert deliver(client, "d-3", key="sk_older").status_code == 401


NO_DELIVERIES: list[tuple[bytes, dict[str, str], int]] = [
    (BODY, {"Content_Type": "text/plain"}, 415),
    (b"{", {}, 400),
    (b'{"event":1,"event":2}', {}, 400),
    (b"[]", {}, 422),
    (b'{"event":"round.sealed","roundId":"7"}', {}, 422),
    (b'{"event":"round.sealed","roundId":true}', {}, 422),
    (b'{"roundId":7}', {}, 422),
    (b'"' + b"x" * 300_000 + b'"', {}, 413),
]


def test_what_is_no_delivery_is_refused_though_it_is_signed(client: FlaskClient) -> None:
    for body, changed, status in NO_DELIVERIES:
        assert deliver(client, body=body, **changed).status_code == status, body[:50]
    assert rows("SELECT * FROM webhooks") == []


def test_an_event_of_a_newer_coordinator_is_kept_and_does_no_harm(client: FlaskClient) -> None:
    assert deliver(client, body=b'{"event":"round.blessed","roundId":null,"more":{"than":"ours"}}').status_code == 200
    handle("d-1")
    assert rows("SELECT handled_at IS NOT NULL, due_at FROM webhooks") == [(True, None)]


def test_a_thousand_at_once_are_all_taken_and_all_worked_on(client: FlaskClient) -> None:
    app = client.application

    def send(number: int) -> int:
        return deliver(app.test_client(), f"d-{number % 900}").status_code

    with ThreadPoolExecutor(16) as pool:
        assert set(pool.map(send, range(1_000))) == {200}
    assert rows("SELECT count(*), sum(repeats) FROM webhooks") == [(900, 100)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(handle, [f"d-{number}" for number in range(900)]))
    assert rows("SELECT count(*) FROM webhooks WHERE handled_at IS NULL OR due_at IS NOT NULL") == [(0,)]


def test_a_delivery_calls_for_what_it_is_about(client: FlaskClient) -> None:
    for kind, moved in (("heartbeat", "operator.heartbeat_missed"), ("poll", "round.opened")):
        later("chores")
        body = envelope(moved, 8 if kind == "poll" else None, "2026-02-01T10:00:00.000Z", {})
        assert deliver(client, kind, body=body).status_code == 200
        handle(kind)
        assert rows("SELECT kind FROM chores WHERE due_at <= now()") == [(kind,)]


def later(table: str) -> None:
    from sqlalchemy import text

    from player.models.session import transaction

    with transaction() as session:
        session.execute(text(f"UPDATE {table} SET due_at = now() + interval '1 hour'"))


def handle(delivery: str) -> None:
    from player.tasks.heard import handle_webhook

    handle_webhook(delivery)
