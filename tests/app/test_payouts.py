"""Reporting paid prizes: what becomes claimed, on time or late, once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from protocol.lifecycle import State
from tests.app.conftest import Caller, assert_error
from tests.factories import a_played_round, rows, take_to

pytestmark = pytest.mark.usefixtures("generous")

PATH = "/api/operator/payouts"


@pytest.fixture
def sellers(operator: Callable[..., Caller]) -> list[Caller]:
    return [operator("a"), operator("b")]


def played(sellers: list[Caller], state: State = State.SETTLED) -> int:
    return a_played_round([seller.id for seller in sellers], state, 40)


def prizes_of(round_id: int, operator_id: str) -> list[dict[str, Any]]:
    found = rows(
        "SELECT ticket_id, tier FROM winners WHERE round_id = :r AND operator_id = :o ORDER BY tier, ticket_id",
        r=round_id,
        o=operator_id,
    )
    return [{"ticketId": ticket_id, "tier": tier} for ticket_id, tier in found]


def counted(operator_id: str) -> tuple[int, int]:
    [(on_time, late)] = rows("SELECT payouts_on_time, payouts_late FROM operators WHERE id = :o", o=operator_id)
    return on_time, late


def test_a_paid_prize_is_shown_as_claimed_and_counts_once(sellers: list[Caller], anybody: Caller) -> None:
    seller, other = sellers
    round_id = played(sellers)
    prizes = prizes_of(round_id, seller.id)
    report = {"roundId": round_id, "payouts": prizes[:3]}
    expected = {"success": True, "roundId": round_id, "operatorId": seller.id, "late": 0}
    assert seller.post(PATH, report).get_json() == expected | {"accepted": 3, "alreadyClaimed": 0}
    assert seller.post(PATH, report).get_json() == expected | {"accepted": 0, "alreadyClaimed": 3}
    report["payouts"] = prizes
    assert seller.post(PATH, report).get_json() == expected | {"accepted": len(prizes) - 3, "alreadyClaimed": 3}
    assert counted(seller.id) == (len(prizes), 0)
    assert counted(other.id) == (0, 0)
    shown = anybody.get(f"/api/public/sub-prizes/{round_id}").get_json()
    claimed = {entry["operatorId"]: set() for tier in shown["tiers"] for entry in tier["winners"]}
    for tier in shown["tiers"]:
        for entry in tier["winners"]:
            claimed[entry["operatorId"]].add(entry["claimed"])
    assert claimed == {seller.id: {True}, other.id: {False}}
    assert seller.get("/api/operator/me").get_json()["totalPayoutsOnTime"] == len(prizes)


def test_after_the_deadline_it_counts_as_late(sellers: list[Caller]) -> None:
    seller = sellers[0]
    round_id = played(sellers, State.CLOSED)
    first, second, *_ = prizes_of(round_id, seller.id)
    rows(
        "UPDATE winners SET claim_deadline = now() - interval '1 second' "
        "WHERE operator_id = :o AND ticket_id = :t AND tier = :n RETURNING tier",
        o=seller.id,
        t=first["ticketId"],
        n=first["tier"],
    )
    answer = seller.post(PATH, {"roundId": round_id, "payouts": [first, second]}).get_json()
    assert (answer["accepted"], answer["late"]) == (2, 1)
    assert counted(seller.id) == (1, 1)


def test_one_wrong_payout_refuses_the_report_and_is_named(sellers: list[Caller]) -> None:
    seller, other = sellers
    round_id = played(sellers)
    mine, theirs = prizes_of(round_id, seller.id), prizes_of(round_id, other.id)
    foreign = next(prize for prize in theirs if prize not in mine)
    for wrong in (foreign, {"ticketId": "never-sold", "tier": 1}):
        body = assert_error(seller.post(PATH, {"roundId": round_id, "payouts": [mine[0], wrong]}), 422, "invalid")
        assert list(body["details"]["payouts"]) == ["1"]
        assert wrong["ticketId"] in body["details"]["payouts"]["1"]["ticketId"][0]
    twice = assert_error(seller.post(PATH, {"roundId": round_id, "payouts": [mine[0], mine[0]]}), 422, "invalid")
    assert list(twice["details"]["payouts"]) == ["0", "1"]
    assert rows("SELECT count(*) FROM winners WHERE claimed_at IS NOT NULL") == [(0,)]
    assert counted(seller.id) == (0, 0)


def test_before_settlement_and_outside_the_round_nothing_is_reported(
    sellers: list[Caller], operator: Callable[..., Caller]
) -> None:
    round_id = played(sellers, State.DRAWN)
    report = {"roundId": round_id, "payouts": prizes_of(round_id, sellers[0].id)}
    assert_error(sellers[0].post(PATH, report), 409, "not_settled")
    take_to(round_id, State.SETTLED)
    assert_error(operator("c").post(PATH, report), 403, "not_invited")
    assert_error(sellers[0].post(PATH, report | {"roundId": 99}), 404, "not_found")
    assert_error(sellers[0].post(PATH, {"roundId": round_id, "payouts": []}), 422, "invalid")
    too_many = [{"ticketId": f"t-{place}", "tier": 1} for place in range(10_001)]
    assert_error(sellers[0].post(PATH, {"roundId": round_id, "payouts": too_many}), 422, "invalid")


def test_the_same_report_many_times_at_once_counts_once(sellers: list[Caller]) -> None:
    seller = sellers[0]
    round_id = played(sellers)
    prizes = prizes_of(round_id, seller.id)

    def report(_: int) -> dict[str, Any]:
        client = Caller(seller.client.application.test_client(), seller.headers)
        answer: dict[str, Any] = client.post(PATH, {"roundId": round_id, "payouts": prizes}).get_json()
        return answer

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(report, range(8)))
    assert sorted(answer["accepted"] for answer in answers) == [0] * 7 + [len(prizes)]
    assert counted(seller.id) == (len(prizes), 0)
