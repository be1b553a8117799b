"""Interface section 4.2: the operator's endpoints, one test each: path, method, body, status, and every field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.contract.fields import ERROR, INVITED_ROUND, PROFILE
from tests.contract.shapes import (
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
from tests.contract.world import CLOSED, TICKETS, WON, Party, World, manifest, ticket

POSTS: dict[str, dict[str, Any]] = {
    "/api/operator/tickets": {"roundId": CLOSED, "tickets": [ticket(0)]},
    "/api/operator/manifest": {"roundId": CLOSED, "manifestJson": "", "manifestHash": "", "ticketCount": 0},
    "/api/operator/check-tickets": {"roundId": CLOSED},
}
"""Every path that takes a body by POST, and its fields."""


def test_4_2_operator__post_tickets(world: World, newcomer: Party, fresh_round: Callable[[], int]) -> None:
    round_id = fresh_round()
    published: Fields = {
        "success": exactly(True),
        "roundId": exactly(round_id),
        "operatorId": exactly(newcomer.id),
        "ticketsAccepted": exactly(7),
        "state": exactly("OPEN"),
    }
    assert_fields(world.sell(newcomer, round_id, 7), published)
    assert world.read(f"/api/public/rounds/{round_id}")["totalTickets"] == 7


def test_4_2_operator__post_manifest(world: World, newcomer: Party, fresh_round: Callable[[], int]) -> None:
    round_id = fresh_round()
    world.sell(newcomer, round_id, 7)
    published: Fields = {
        "success": exactly(True),
        "roundId": exactly(round_id),
        "state": exactly("OPEN"),
        "sealedCount": exactly(1),
        "totalInvited": exactly(1),
    }
    assert_fields(world.send("/api/operator/manifest", manifest(round_id, 7), newcomer.headers), published)


def test_4_2_operator__post_check_tickets(world: World, alba: Party) -> None:
    won = list_of(object_of({"ticketId": STRING}))
    published: Fields = {
        "roundId": exactly(WON),
        "operatorId": exactly(alba.id),
        "jackpotWinners": won,
        "jackpotWinnerCount": NUMBER,
        "bonusTiers": list_of(object_of({"tier": NUMBER, "winnerCount": NUMBER, "winners": won})),
        "totalWinners": NUMBER,
    }
    shown = world.send("/api/operator/check-tickets", {"roundId": WON}, alba.headers)
    assert_fields(shown, published)
    assert [tier["tier"] for tier in shown["bonusTiers"]] == [1, 2, 3, 4, 5]
    assert [tier["winnerCount"] for tier in shown["bonusTiers"]] == [len(t["winners"]) for t in shown["bonusTiers"]]
    assert shown["jackpotWinnerCount"] == len(shown["jackpotWinners"]) > 0
    counts = [shown["jackpotWinnerCount"], *(tier["winnerCount"] for tier in shown["bonusTiers"])]
    assert shown["totalWinners"] == sum(counts)


def test_4_2_operator__post_check_tickets_finds_the_published_winners(world: World, alba: Party) -> None:
    mine = world.send("/api/operator/check-tickets", {"roundId": CLOSED}, alba.headers)["bonusTiers"][4]
    everybody = world.read(f"/api/public/draw/{CLOSED}/winners?tier=5")["subPrizeTiers"][0]["winners"]
    assert {won["ticketId"] for won in mine["winners"]} == {
        won["ticketId"] for won in everybody if won["operatorId"] == alba.id
    }
    assert mine["winnerCount"] == TICKETS // 100


def test_4_2_operator__post_heartbeat(world: World, newcomer: Party) -> None:
    shown = world.send("/api/operator/heartbeat", headers=newcomer.headers)
    assert_fields(shown, {"success": exactly(True), "operatorId": exactly(newcomer.id), "timestamp": TIMESTAMP})
    assert world.read("/api/operator/me", newcomer.headers)["lastHeartbeat"] == shown["timestamp"]


def test_4_2_operator__put_webhook(world: World, newcomer: Party) -> None:
    url = world.receiver.url("somewhere/else")
    answer = world.call("PUT", "/api/operator/webhook", {"url": url}, newcomer.headers)
    assert answer.status_code == 200
    published: Fields = {"success": exactly(True), "operatorId": exactly(newcomer.id), "webhookUrl": exactly(url)}
    assert_fields(answer.json(), published)
    assert world.read("/api/operator/me", newcomer.headers)["webhookUrl"] == url


def test_4_2_operator__get_rounds(world: World, alba: Party) -> None:
    shown = world.read("/api/operator/rounds", alba.headers)
    assert_fields(shown, {"rounds": list_of(object_of(INVITED_ROUND)), "count": NUMBER})
    assert shown["count"] == len(shown["rounds"])
    closed = next(entry for entry in shown["rounds"] if entry["id"] == CLOSED)
    full = world.read(f"/api/public/rounds/{CLOSED}")
    assert closed == {field: full[field] for field in INVITED_ROUND}


def test_4_2_operator__get_rounds_shows_those_it_is_invited_to(
    world: World, newcomer: Party, fresh_round: Callable[[], int]
) -> None:
    assert world.read("/api/operator/rounds", newcomer.headers) == {"rounds": [], "count": 0}
    round_id = fresh_round()
    assert [entry["id"] for entry in world.read("/api/operator/rounds", newcomer.headers)["rounds"]] == [round_id]


def test_4_2_operator__get_me(world: World, alba: Party) -> None:
    shown = world.read("/api/operator/me", alba.headers)
    assert_fields(shown, PROFILE)
    assert shown["webhookUrl"] == world.receiver.url(alba.path)
    assert alba.key not in str(shown)


@each("path", POSTS)
def test_4_2_body_has_no_other_field(world: World, alba: Party, path: str) -> None:
    answer = world.post(path, POSTS[path] | {"more": 1}, alba.headers)
    assert answer.status_code == 422
    assert "more" in answer.json()["details"]


@each("path", POSTS)
def test_4_2_body_is_required(world: World, alba: Party, path: str) -> None:
    answer = world.post(path, {}, alba.headers)
    assert answer.status_code == 422
    assert set(answer.json()["details"]) == set(POSTS[path])


@each("call", ["POST /tickets", "POST /manifest", "POST /check-tickets", "POST /heartbeat", "PUT /webhook"])
def test_4_2_path_takes_one_method(world: World, alba: Party, call: str) -> None:
    right, path = call.split()
    for method in {"GET", "POST", "PUT", "PATCH", "DELETE"} - {right}:
        answer = world.call(method, f"/api/operator{path}", headers=alba.headers)
        assert (answer.status_code, right in answer.headers["Allow"]) == (405, True)
        assert_fields(answer.json(), ERROR)


def test_4_2_somebody_elses_round_takes_nothing_from_an_operator(
    world: World, newcomer: Party, fresh_round: Callable[[], int]
) -> None:
    dora, round_id = world.parties["dora"], fresh_round()
    for path, body in (
        ("/api/operator/tickets", {"roundId": round_id, "tickets": [ticket(0)]}),
        ("/api/operator/manifest", manifest(round_id, 0)),
        ("/api/operator/check-tickets", {"roundId": round_id}),
    ):
        assert world.post(path, body, dora.headers).status_code == 403


@each("path", ["tickets", "manifest", "check-tickets"])
def test_4_2_unknown_round(world: World, alba: Party, path: str) -> None:
    body: dict[str, Any] = {
        "tickets": {"roundId": 999_999, "tickets": [ticket(0)]},
        "manifest": manifest(999_999, 0),
        "check-tickets": {"roundId": 999_999},
    }[path]
    answer = world.post(f"/api/operator/{path}", body, alba.headers)
    assert answer.status_code == 404
    assert_fields(answer.json(), ERROR)
