"""Interface section 4.1: the public endpoints, one test each: path, method, query, status, and every field."""

from __future__ import annotations

from typing import Any

from tests.contract.fields import (
    APPROVED,
    DRAW,
    DRAW_SUMMARY,
    ERROR,
    EVENT_DATA,
    OPERATOR,
    OPERATOR_ADDS,
    PENDING,
    ROUND,
    ROUND_IN_LIST_AT_ANY_TIME,
    STATISTICS,
    WINNER,
    WINNER_IN_BREAKDOWN,
)
from tests.contract.shapes import (
    BOOLEAN,
    COUNT_TEXT,
    DOLLARS,
    MICRO,
    NUMBER,
    ODDS,
    STRING,
    TIMESTAMP,
    Fields,
    assert_fields,
    each,
    exactly,
    list_of,
    object_of,
)
from tests.contract.world import CLOSED, DRAWN, OPEN, WON, Party, World, form

GETS = {
    "/api/public/rounds": "limit offset",
    f"/api/public/rounds/{CLOSED}": "",
    f"/api/public/rounds/{CLOSED}/events": "",
    f"/api/public/draw/{CLOSED}": "",
    f"/api/public/draw/{CLOSED}/winners": "tier limit offset",
    f"/api/public/sub-prizes/draw_{CLOSED}": "tier limit offset",
    "/api/public/history": "limit offset",
    "/api/public/jackpot": "",
    "/api/public/jackpot-counter": "",
    "/api/public/odds": "",
    "/api/public/stats": "",
    "/api/public/operators": "",
    "/health": "",
}
"""Every path that anybody may GET, and what its query may hold (`tier` is ours)."""

UNKNOWN = (
    *("rounds/999999", "rounds/none", "rounds/999999/events", "draw/999999", "draw/draw_999999", "draw/none"),
    *("draw/999999/winners", "sub-prizes/draw_999999", "operators/none"),
)


def test_4_1_public__get_rounds(world: World) -> None:
    shown = world.read("/api/public/rounds")
    assert_fields(shown, {"rounds": list_of(object_of(ROUND_IN_LIST_AT_ANY_TIME)), "count": NUMBER})
    assert shown["count"] == len(shown["rounds"])
    page = world.read("/api/public/rounds?limit=2&offset=1")
    assert page == {"rounds": shown["rounds"][1:3], "count": 2}


def test_4_1_public__get_rounds_id(world: World) -> None:
    shown = world.read(f"/api/public/rounds/{WON}")
    assert_fields(shown, ROUND)
    assert shown["id"] == WON


def test_4_1_public__get_rounds_id_events(world: World) -> None:
    shown = world.read(f"/api/public/rounds/{CLOSED}/events")
    assert set(shown) == {"events", "count"}
    assert shown["count"] == len(shown["events"]) > 0
    for entry in shown["events"]:
        data = object_of(EVENT_DATA[entry["type"]])
        assert_fields(entry, {"type": STRING, "roundId": exactly(CLOSED), "timestamp": TIMESTAMP, "data": data})


def test_4_1_public__get_draw_id(world: World) -> None:
    by_round, by_draw = world.read(f"/api/public/draw/{CLOSED}"), world.read(f"/api/public/draw/draw_{CLOSED}")
    assert_fields(by_round, DRAW)
    assert by_draw == by_round
    assert world.get(f"/api/public/draw/{OPEN}").status_code == 404


def test_4_1_public__get_draw_id_winners(world: World) -> None:
    shown = world.read(f"/api/public/draw/{CLOSED}/winners")
    tier: Fields = {"tier": NUMBER, "winners": list_of(object_of(WINNER)), "count": NUMBER}
    published: Fields = {
        "drawId": exactly(f"draw_{CLOSED}"),
        "roundId": exactly(CLOSED),
        "jackpotWon": BOOLEAN,
        "jackpotWinnerCount": NUMBER,
        "jackpotAmount": MICRO,
        "subPrizeTiers": list_of(object_of(tier)),
        "totalSubPrizeWinners": NUMBER,
    }
    assert_fields(shown, published)
    assert shown == world.read(f"/api/public/draw/draw_{CLOSED}/winners")
    tiers = shown["subPrizeTiers"]
    assert [tier["tier"] for tier in tiers] == [1, 2, 3, 4, 5]
    assert [tier["count"] for tier in tiers] == [len(tier["winners"]) for tier in tiers]
    assert shown["totalSubPrizeWinners"] == sum(tier["count"] for tier in tiers) > 0


def test_4_1_public__get_draw_id_winners_lists_empty_tiers(world: World) -> None:
    tiers = world.read(f"/api/public/draw/{CLOSED}/winners")["subPrizeTiers"]
    assert tiers[0] == {"tier": 1, "winners": [], "count": 0}


def test_4_1_public__get_sub_prizes_drawId(world: World) -> None:
    shown = world.read(f"/api/public/sub-prizes/draw_{CLOSED}")
    winners = list_of(object_of(WINNER_IN_BREAKDOWN))
    tier: Fields = {"tier": NUMBER, "winnerCount": NUMBER, "totalPayout": MICRO, "winners": winners}
    published: Fields = {
        "drawId": exactly(f"draw_{CLOSED}"),
        "tiers": list_of(object_of(tier)),
        "totalWinners": NUMBER,
    }
    assert_fields(shown, published)
    assert [tier["tier"] for tier in shown["tiers"]] == [1, 2, 3, 4, 5]
    for tier_shown in shown["tiers"]:
        assert tier_shown["winnerCount"] == len(tier_shown["winners"])
        assert int(tier_shown["totalPayout"]) == sum(int(won["prizeAmount"]) for won in tier_shown["winners"])
    assert shown["totalWinners"] == sum(tier["winnerCount"] for tier in shown["tiers"]) > 0


def test_4_1_public__get_history(world: World) -> None:
    shown = world.read("/api/public/history")
    assert_fields(
        shown, {"draws": list_of(object_of(DRAW_SUMMARY)), "count": NUMBER, "limit": NUMBER, "offset": NUMBER}
    )
    assert [draw["roundId"] for draw in shown["draws"]] == [DRAWN, WON, CLOSED]
    assert (shown["count"], shown["limit"], shown["offset"]) == (3, 20, 0)
    page = world.read("/api/public/history?limit=1&offset=1")
    assert page == {"draws": shown["draws"][1:2], "count": 1, "limit": 1, "offset": 1}


def test_4_1_public__get_jackpot(world: World) -> None:
    published: Fields = {
        "jackpot": MICRO,
        "drawsSinceLastWin": NUMBER,
        "lastWinRoundId": exactly(WON),
        "cumulativeTickets": COUNT_TEXT,
        "currentOddsRange": NUMBER,
        "nextDrawTime": TIMESTAMP,
        "nextDrawRoundId": NUMBER,
        "ticketPrice": exactly(3_000_000),
        "updatedAt": TIMESTAMP,
    }
    assert_fields(world.read("/api/public/jackpot"), published)


def test_4_1_public__get_jackpot_counter(world: World) -> None:
    answer = world.get("/api/public/jackpot-counter")
    published: Fields = {
        "jackpot": DOLLARS,
        "currency": exactly("USD"),
        "drawsSinceLastWin": NUMBER,
        "nextDrawTime": TIMESTAMP,
        "ticketPrice": exactly("3.00"),
        "currentOdds": ODDS,
    }
    assert_fields(answer.json(), published)
    assert answer.json()["currentOdds"] == "1 in 10,000,000"


def test_4_1_public__get_jackpot_counter_is_cacheable(world: World) -> None:
    kept = world.get("/api/public/jackpot-counter").headers["Cache-Control"].split(", ")
    assert "public" in kept
    [seconds] = [int(part.removeprefix("max-age=")) for part in kept if part.startswith("max-age=")]
    assert 1 <= seconds <= 60


def test_4_1_public__get_odds(world: World) -> None:
    published: Fields = {
        "currentOddsRange": exactly(10_000_000),
        "currentOdds": exactly("1 in 10,000,000"),
        "cumulativeTickets": COUNT_TEXT,
        "currentMilestone": object_of({"cumulativeTickets": exactly("0"), "oddsRange": exactly(10_000_000)}),
        "nextMilestone": object_of(
            {
                "cumulativeTickets": exactly("100000000"),
                "oddsRange": exactly(100_000_000),
                "ticketsRemaining": COUNT_TEXT,
            }
        ),
    }
    shown = world.read("/api/public/odds")
    assert_fields(shown, published)
    assert int(shown["nextMilestone"]["ticketsRemaining"]) == 100_000_000 - int(shown["cumulativeTickets"])


def test_4_1_public__get_odds_on_the_last_step_has_no_next_milestone(world: World) -> None:
    with world.sold(100_000_000_000):
        assert world.read("/api/public/odds")["nextMilestone"] is None


def test_4_1_public__get_stats(world: World) -> None:
    assert_fields(world.read("/api/public/stats"), STATISTICS)


def test_4_1_public__get_operators(world: World) -> None:
    shown = world.read("/api/public/operators")
    assert_fields(shown, {"operators": list_of(object_of(OPERATOR)), "count": NUMBER})
    assert shown["count"] == len(shown["operators"]) >= len(world.parties) - 1


def test_4_1_public__get_operators_id(world: World, alba: Party) -> None:
    shown = world.read(f"/api/public/operators/{alba.id}")
    assert_fields(shown, {**OPERATOR, **OPERATOR_ADDS})
    assert shown["operatorId"] == alba.id


def test_4_1_public__post_apply(world: World, company: str) -> None:
    published: Fields = {
        "success": exactly(True),
        "applicationId": STRING,
        "applicationToken": STRING,
        "status": exactly("pending"),
        "message": STRING,
        "warning": STRING,
    }
    assert_fields(world.send("/api/public/apply", form(company), status=201), published)


def test_4_1_public__post_apply_while_one_is_pending_for_the_same_e_mail(world: World, company: str) -> None:
    filed = world.send("/api/public/apply", form(company), status=201)
    again = form(company) | {"contactEmail": form(company)["contactEmail"].upper()}
    refused = world.send("/api/public/apply", again, status=409)
    assert_fields(refused, {**ERROR, "applicationId": exactly(filed["applicationId"])})


def test_4_1_public__get_application_status_id(world: World, company: str) -> None:
    filed = world.send("/api/public/apply", form(company), status=201)
    path, token = _status(filed)
    shown = world.read(path, token)
    assert_fields(shown, PENDING)
    assert (shown["applicationId"], shown["companyName"]) == (filed["applicationId"], company.capitalize())
    approval = f"/api/admin/applications/{filed['applicationId']}/approve"
    world.send(approval, {"reviewNote": "welcome"}, world.admin)
    assert_fields(world.read(path, token), APPROVED)


def test_4_1_public__get_application_status_id_does_not_show_the_token(world: World, company: str) -> None:
    filed = world.send("/api/public/apply", form(company), status=201)
    path, token = _status(filed)
    assert filed["applicationToken"] not in world.get(path, token).text


def test_4_1_public__get_health(world: World) -> None:
    assert_fields(world.read("/health"), {"status": STRING, "version": STRING, "timestamp": TIMESTAMP})


@each("path", GETS)
def test_4_1_path_takes_GET_and_no_other_method(world: World, path: str) -> None:
    assert world.get(path).status_code == 200
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        answer = world.call(method, path)
        assert (answer.status_code, method in answer.headers["Allow"]) == (405, False)
        assert_fields(answer.json(), ERROR)


@each("path", GETS)
def test_4_1_query_holds_nothing_else(world: World, path: str) -> None:
    for name in ("limit", "offset", "tier", "page"):
        known = name in GETS[path].split()
        assert world.get(f"{path}?{name}=1").status_code == (200 if known else 422)


@each("query", ["limit=0", "limit=-1", "limit=x", "limit=", "offset=-1", "offset=1.5", "offset=x"])
@each("path", ["rounds", "history"])
def test_4_1_paging_is_refused(world: World, path: str, query: str) -> None:
    answer = world.get(f"/api/public/{path}?{query}")
    assert answer.status_code == 422
    assert list(answer.json()["details"]) == [query.split("=")[0]]


@each("path", UNKNOWN)
def test_4_1_unknown_id(world: World, path: str) -> None:
    answer = world.get(f"/api/public/{path}")
    assert answer.status_code == 404
    assert_fields(answer.json(), ERROR)


def _status(filed: dict[str, Any]) -> tuple[str, dict[str, str]]:
    path = f"/api/public/application-status/{filed['applicationId']}"
    return path, {"X-Application-Token": filed["applicationToken"]}
