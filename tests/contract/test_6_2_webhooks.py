"""Interface section 6.2: the webhooks as they arrive: rules of delivery, the fourteen events, their log entries."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tests.contract.fields import NUMBERS
from tests.contract.playing import TAKE_NOTHING
from tests.contract.shapes import TIMESTAMP, assert_fields, each, exactly, object_of
from tests.contract.webhooks import EVENTS, NOBODY_WON, delivered, signature
from tests.contract.world import CLOSED, OPEN, UNHEARD, WON, Party, World
from tests.polling import until


@each("event", EVENTS)
def test_6_2_event__data(world: World, event: str) -> None:
    told = delivered(world, event).told
    published = {
        "event": exactly(event),
        "roundId": exactly(EVENTS[event].round_id),
        "timestamp": TIMESTAMP,
        "data": object_of(EVENTS[event].data),
    }
    assert_fields(told, published)


def given_up(world: World, company: str) -> dict[str, Any]:
    """The delivery that tells an operator which does not listen that its round was opened, after the last attempt."""

    def found() -> dict[str, Any] | None:
        logs = world.read("/api/operator/webhook-logs", world.parties[company].headers)["logs"]
        return next((one for one in logs if one["roundId"] == UNHEARD and one["status"] == "failed"), None)

    delivery = until(found, within=60, what=f"giving up {company}")
    assert delivery is not None
    return delivery


def test_6_2_delivery__rule_1_is_a_POST_of_a_JSON_body(world: World) -> None:
    request = delivered(world, "round.sealed")
    assert request.method == "POST"
    assert request.headers["Content-Type"] == "application/json"
    assert list(request.told) == ["event", "roundId", "timestamp", "data"]
    assert request.headers["X-Service-Event"] == "round.sealed"


@each("event", EVENTS)
def test_6_2_signature_of(world: World, event: str) -> None:
    request = delivered(world, event)
    party = world.parties[EVENTS[event].company]
    assert request.headers["X-Service-Signature"] == signature(request, party.key)


def test_6_2_delivery__rule_2_is_signed_with_the_operators_key(world: World) -> None:
    request = delivered(world, "round.sealed")
    assert request.headers["X-Service-Signature"] == signature(request, world.parties["alba"].key)
    assert request.headers["X-Service-Signature"] != signature(request, world.parties["brio"].key)


def test_6_2_delivery__rule_3_an_answer_in_time(world: World, alba: Party) -> None:
    """30 seconds are the default; the coordinator under test waits for two."""
    request = delivered(world, "round.opened")
    delivery_id = request.headers["X-Service-Delivery"]
    query = "SELECT attempts FROM deliveries WHERE id = %s AND status = 'delivered'"
    assert until(lambda: world.rows(query, delivery_id))
    assert {attempt["errorClass"] for attempt in given_up(world, "lenta")["attempts"]} == {"timeout"}


@each("company", TAKE_NOTHING)
def test_6_2_not_taken_by(world: World, company: str) -> None:
    """Only 200 in time is success: no other status is, no redirect is followed."""
    assert len(given_up(world, company)["attempts"]) == 3
    assert len(world.receiver.at(world.parties[company].path)) >= 3
    assert world.receiver.at("redirected") == []


def test_6_2_delivery__rule_4_three_attempts_with_exponential_backoff(world: World) -> None:
    delivery = given_up(world, "rota")
    assert [attempt["number"] for attempt in delivery["attempts"]] == [1, 2, 3]
    first, second, third = (datetime.fromisoformat(attempt["startedAt"]) for attempt in delivery["attempts"])
    base = float(world.environment["WEBHOOK_BASE_SECONDS"])
    # A fifth sooner or later at random, so that receivers are not hit by everybody at once.
    assert (second - first).total_seconds() >= base * 0.8
    assert (third - second).total_seconds() >= base * 4 * 0.8


def test_6_2_every_attempt_is_the_same_message(world: World) -> None:
    delivery = given_up(world, "rota")
    came = world.receiver.at(world.parties["rota"].path)
    assert {request.headers["X-Service-Delivery"] for request in came} == {delivery["deliveryId"]}
    assert len({request.body for request in came}) == 1


def test_6_2_delivery__rule_5_the_sandbox_sends_samples_on_demand(world: World, newcomer: Party) -> None:
    answer = world.send("/api/operator/test-webhook", {"eventType": "operator.won"}, newcomer.headers)
    assert answer["success"] is True
    [request] = world.receiver.at(newcomer.path)
    assert request.told["event"] == "operator.won"
    assert request.headers["X-Service-Signature"] == signature(request, newcomer.key)


def test_6_2_emission__round_sealed_and_ROUND_SEALED_report_sealedCount(world: World) -> None:
    told = delivered(world, "round.sealed").told["data"]
    assert told["sealedCount"] == _logged(world, CLOSED, "ROUND_SEALED")["sealedCount"] == 3


def test_6_2_emission__round_drawn_corresponds_to_ROUND_DRAWN(world: World) -> None:
    told = delivered(world, "round.drawn").told["data"]
    assert {number: told[number] for number in NUMBERS} == _logged(world, WON, "ROUND_DRAWN")


def test_6_2_emission__round_settled_corresponds_to_ROUND_SETTLED(world: World) -> None:
    told = delivered(world, "round.settled").told["data"]
    shown = world.read(f"/api/public/rounds/{WON}")
    assert told["settlementHash"] == _logged(world, WON, "ROUND_SETTLED")["settlementHash"] == shown["settlementHash"]


def test_6_2_a_draw_that_nobody_won_has_no_winner(world: World) -> None:
    told = delivered(world, "round.drawn", round_id=CLOSED).told["data"]
    assert_fields(told, EVENTS["round.drawn"].data | {"roundId": exactly(CLOSED)} | NOBODY_WON)


def test_6_2_round_events_go_to_everybody_invited(world: World) -> None:
    for event in ("round.opened", "round.sealed", "round.drawn", "round.closed"):
        for company in ("alba", "brio", "cava"):
            delivered(world, event, company, CLOSED)


def test_6_2_operator_events_go_to_that_operator_alone(world: World) -> None:
    assert delivered(world, "operator.excluded").told["data"] == {
        "roundId": CLOSED,
        "operatorId": world.parties["cava"].id,
        "reason": "missed_escrow",
    }
    for company in ("alba", "brio"):
        delivered(world, "round.closed", company)
        came = [one.told for one in world.receiver.at(world.parties[company].path)]
        events = [told["event"] for told in came if told["roundId"] == CLOSED]
        assert "operator.excluded" not in events


def test_6_2_somebody_not_invited_hears_nothing(world: World) -> None:
    delivered(world, "round.opened", "brio", OPEN)
    assert world.receiver.at(world.parties["dora"].path) == []


def _logged(world: World, round_id: int, kind: str) -> dict[str, object]:
    entries = world.read(f"/api/public/rounds/{round_id}/events")["events"]
    [data] = [entry["data"] for entry in entries if entry["type"] == kind]
    found: dict[str, object] = data
    return found
