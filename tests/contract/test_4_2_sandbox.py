"""Interface section 4.2: the operator's endpoints of the sandbox, which send it samples of the webhooks.

The interface leaves two of the three shapes open; here they are as we publish them.
"""

from __future__ import annotations

from typing import Any

from tests.contract.fields import ERROR
from tests.contract.shapes import (
    BOOLEAN,
    NULL,
    NUMBER,
    STRING,
    TIMESTAMP,
    Fields,
    assert_fields,
    each,
    exactly,
    list_of,
    object_of,
)
from tests.contract.webhooks import EVENTS
from tests.contract.world import Party, World

DELIVERY: Fields = {"event": STRING, "status": exactly("delivered"), "statusCode": exactly(200)}
PHASES: Fields = dict.fromkeys(("dns", "connect", "tls", "send", "wait", "receive"), NUMBER | NULL)
ATTEMPT: Fields = {
    "number": NUMBER,
    "startedAt": TIMESTAMP,
    "durationMs": NUMBER,
    "url": STRING,
    "statusCode": NUMBER | NULL,
    "errorClass": STRING | NULL,
    "detail": STRING | NULL,
    "phasesMs": object_of(PHASES) | NULL,
    "peer": STRING | NULL,
    "connectionReused": BOOLEAN,
    "responseBody": NULL | exactly(""),
}
LOGGED: Fields = {
    "deliveryId": STRING,
    "event": STRING,
    "roundId": NUMBER | NULL,
    "status": STRING,
    "createdAt": TIMESTAMP,
    "nextAttemptAt": TIMESTAMP | NULL,
    "attempts": list_of(object_of(ATTEMPT)),
}


def test_4_2_operator__post_test_webhook(world: World, newcomer: Party) -> None:
    shown = world.send("/api/operator/test-webhook", {"eventType": "round.drawn"}, newcomer.headers)
    delivery = object_of(DELIVERY | {"event": exactly("round.drawn")})
    assert_fields(shown, {"success": exactly(True), "delivery": delivery, "hint": STRING})
    [request] = world.receiver.at(newcomer.path)
    assert request.told["event"] == "round.drawn"


def test_4_2_operator__post_test_webhook_all(world: World, newcomer: Party) -> None:
    shown = world.send("/api/operator/test-webhook/all", headers=newcomer.headers)
    published: Fields = {
        "success": exactly(True),
        "deliveries": list_of(object_of(DELIVERY)),
        "count": exactly(len(EVENTS)),
        "hint": STRING,
    }
    assert_fields(shown, published)
    assert {delivery["event"] for delivery in shown["deliveries"]} == set(EVENTS)
    assert {request.told["event"] for request in world.receiver.at(newcomer.path)} == set(EVENTS)


def test_4_2_operator__get_webhook_logs(world: World, newcomer: Party) -> None:
    world.send("/api/operator/test-webhook", {"eventType": "round.sealed"}, newcomer.headers)
    shown = world.read("/api/operator/webhook-logs", newcomer.headers)
    assert_fields(shown, {"logs": list_of(object_of(LOGGED)), "count": exactly(1)})
    [logged] = shown["logs"]
    assert (logged["event"], logged["status"], logged["nextAttemptAt"]) == ("round.sealed", "delivered", None)
    [attempt] = logged["attempts"]
    assert (attempt["number"], attempt["statusCode"], attempt["errorClass"]) == (1, 200, None)


@each("event", EVENTS)
def test_4_2_a_sample_has_the_fields_of_the_real_event(world: World, newcomer: Party, event: str) -> None:
    world.send("/api/operator/test-webhook", {"eventType": event}, newcomer.headers)
    [request] = world.receiver.at(newcomer.path)
    told: dict[str, Any] = request.told
    assert set(told) == {"event", "roundId", "timestamp", "data"}
    assert_fields(told["data"], EVENTS[event].sample)


@each("body", [{}, {"eventType": "round.lost"}, {"eventType": 1}, {"eventType": None}])
def test_4_2_test_webhook_needs_a_published_event(world: World, newcomer: Party, body: dict[str, Any]) -> None:
    answer = world.post("/api/operator/test-webhook", body, newcomer.headers)
    assert answer.status_code == 422
    assert list(answer.json()["details"]) == ["eventType"]


def test_4_2_a_test_without_a_webhook_is_a_conflict(world: World, newcomer: Party) -> None:
    world.rows("UPDATE operators SET webhook_url = NULL WHERE id = %s", newcomer.id)
    refused = world.send("/api/operator/test-webhook/all", headers=newcomer.headers, status=409)
    assert_fields(refused, ERROR)
