"""The lottery as a whole, seen from outside: jackpot, odds, statistics, operators, past draws and their prizes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import pytest

from app.resources.jackpot import odds_view, usd
from models.jackpot import jackpot
from models.session import transaction
from protocol.lifecycle import State
from protocol.odds import LADDER
from protocol.timestamps import format_timestamp
from tests.app.conftest import Caller, assert_error
from tests.factories import (
    a_played_round,
    a_round,
    an_operator,
    balances,
    rows,
    some_operators,
    take_part,
    take_to,
    the_round,
)

ENOUGH_FOR_WINNERS = 1_500


def a_drawn_round(operators: list[str], state: State = State.DRAWN, tickets: int = ENOUGH_FOR_WINNERS) -> int:
    return a_played_round(operators, state, tickets)


def test_the_jackpot_before_anything_was_played(anybody: Caller) -> None:
    shown = anybody.get("/api/public/jackpot").get_json()
    assert datetime.fromisoformat(shown.pop("updatedAt"))
    assert shown == {
        "jackpot": "0",
        "drawsSinceLastWin": 0,
        "lastWinRoundId": None,
        "cumulativeTickets": "0",
        "currentOddsRange": 10_000_000,
        "nextDrawTime": None,
        "nextDrawRoundId": None,
        "ticketPrice": 3_000_000,
    }


def test_the_jackpot_grows_with_a_settled_round_and_names_the_next_draw(anybody: Caller) -> None:
    operators = some_operators(2)
    a_drawn_round(operators, State.CLOSED)
    coming = a_round(operators)
    a_round(operators)
    shown = anybody.get("/api/public/jackpot").get_json()
    [(moved,)] = rows("SELECT max(created_at) FROM ledger_postings WHERE kind = 'settlement'")
    assert shown["updatedAt"] == format_timestamp(moved)
    assert shown["jackpot"] == str(balances()["pool"])
    assert int(shown["jackpot"]) > 0
    assert shown["cumulativeTickets"] == str(2 * ENOUGH_FOR_WINNERS)
    assert shown["nextDrawRoundId"] == coming
    listed = anybody.get(f"/api/public/rounds/{coming}").get_json()
    assert shown["nextDrawTime"] == listed["scheduledDrawTime"]
    counter = anybody.get("/api/public/jackpot-counter").get_json()
    assert counter == {
        "jackpot": usd(int(shown["jackpot"])),
        "currency": "USD",
        "drawsSinceLastWin": 1,
        "nextDrawTime": shown["nextDrawTime"],
        "ticketPrice": "3.00",
        "currentOdds": "1 in 10,000,000",
    }


@pytest.mark.parametrize(
    ("micro", "shown"),
    [(0, "0.00"), (9_999, "0.00"), (10_000, "0.01"), (1_999_999, "1.99"), (123_456_789_000_000, "123456789.00")],
)
def test_usd_are_shown_to_the_cent_and_never_more_than_there_is(micro: int, shown: str) -> None:
    assert usd(micro) == shown


def test_the_odds_tell_the_step_of_the_ladder_and_the_next(anybody: Caller) -> None:
    with transaction() as session:
        jackpot(session).cumulative_tickets = 100_000_001
    assert anybody.get("/api/public/odds").get_json() == {
        "currentOddsRange": 100_000_000,
        "currentOdds": "1 in 100,000,000",
        "cumulativeTickets": "100000001",
        "currentMilestone": {"cumulativeTickets": "100000000", "oddsRange": 100_000_000},
        "nextMilestone": {
            "cumulativeTickets": "1000000000",
            "oddsRange": 300_000_000,
            "ticketsRemaining": "899999999",
        },
    }
    assert odds_view(LADDER[-1].cumulative_tickets)["nextMilestone"] is None


def test_the_statistics_count_rounds_operators_and_tickets(anybody: Caller, admin: Callable[[], Caller]) -> None:
    operators = some_operators(2)
    a_drawn_round(operators, State.CLOSED, tickets=10)
    a_drawn_round(operators, State.SETTLED, tickets=20)
    failed = a_round(operators)
    take_to(failed, State.OPEN)
    from tests.factories import move_clock_to, work

    move_clock_to(failed, "seal_at")
    work(failed)
    assert the_round(failed).state is State.FAILED
    selling = a_round(operators)
    take_part(selling, operators, tickets=5)
    shown = anybody.get("/api/public/stats").get_json()
    assert datetime.fromisoformat(shown.pop("protocolLaunchDate"))
    assert shown == {
        "totalRounds": 4,
        "closedRounds": 1,
        "settledRounds": 2,
        "failedRounds": 1,
        "activeRounds": 1,
        "totalOperators": 2,
        "activeOperators": 2,
        "totalTicketsSold": 20 + 40 + 10,
        "jackpotPool": str(balances()["pool"]),
        "drawsSinceLastWin": 2,
        "currentOddsRange": 10_000_000,
        "cumulativeTickets": "60",
    }


def test_operators_are_listed_with_what_everybody_may_know(anybody: Caller) -> None:
    an_operator("b")
    an_operator("a")
    listed = anybody.get("/api/public/operators").get_json()
    assert listed["count"] == 2
    first = listed["operators"][0]
    assert set(first) == {
        *("operatorId", "name", "jurisdiction", "active", "reputationScore"),
        *("totalRoundsParticipated", "totalRoundsWon", "registeredAt"),
    }
    assert [each["operatorId"] for each in listed["operators"]] == ["op_b", "op_a"]
    single = anybody.get("/api/public/operators/op_a").get_json()
    assert set(single) - set(first) == {"totalRoundsEscrowed", "totalRoundsExcluded", "totalPayoutsOnTime"}
    for unknown in ("op_c", "%00", "A" * 65, "op a"):
        assert_error(anybody.get(f"/api/public/operators/{unknown}"), 404, "not_found")


def test_history_lists_draws_newest_first_without_their_seeds(anybody: Caller) -> None:
    operators = some_operators(1)
    for _ in range(3):
        a_drawn_round(operators, State.CLOSED, tickets=3)
    a_round(operators)
    listed = anybody.get("/api/public/history?limit=2").get_json()
    assert [draw["drawId"] for draw in listed["draws"]] == ["draw_3", "draw_2"]
    assert (listed["count"], listed["limit"], listed["offset"]) == (2, 2, 0)
    draw = anybody.get("/api/public/draw/draw_3").get_json()
    del draw["drawSeed"]
    assert listed["draws"][0] == draw
    rest = anybody.get("/api/public/history?offset=2").get_json()
    assert ([each["roundId"] for each in rest["draws"]], rest["limit"], rest["offset"]) == ([1], 20, 2)


def test_the_breakdown_tells_what_each_tier_pays_and_until_when(anybody: Caller) -> None:
    operators = some_operators(2)
    a_drawn_round(operators)
    shown = anybody.get("/api/public/sub-prizes/draw_1").get_json()
    winners = anybody.get("/api/public/draw/1/winners").get_json()
    assert shown["drawId"] == "draw_1"
    assert [tier["tier"] for tier in shown["tiers"]] == [1, 2, 3, 4, 5]
    assert shown["totalWinners"] == winners["totalSubPrizeWinners"] == sum(t["winnerCount"] for t in shown["tiers"])
    paid = dict(rows("SELECT tier, sum(prize_usdc)::text FROM winners WHERE tier > 0 GROUP BY tier"))
    for tier, same in zip(shown["tiers"], winners["subPrizeTiers"], strict=True):
        assert tier["totalPayout"] == paid.get(tier["tier"], "0")
        assert tier["winnerCount"] == same["count"] == len(tier["winners"])
        for won, listed in zip(tier["winners"], same["winners"], strict=True):
            assert datetime.fromisoformat(won.pop("claimDeadline"))
            assert won == listed


def test_winners_are_paged_tier_by_tier_and_counts_are_of_all(anybody: Caller) -> None:
    a_drawn_round(some_operators(2))
    every = anybody.get("/api/public/draw/1/winners?tier=5").get_json()["subPrizeTiers"][0]
    assert every["count"] > 3
    page = anybody.get("/api/public/draw/1/winners?tier=5&limit=2&offset=1").get_json()["subPrizeTiers"][0]
    assert page["winners"] == every["winners"][1:3]
    assert page["count"] == every["count"]
    beyond = anybody.get("/api/public/sub-prizes/1?tier=5&offset=100000").get_json()["tiers"][0]
    assert (beyond["winners"], beyond["winnerCount"]) == ([], every["count"])
    assert int(beyond["totalPayout"]) == sum(int(won["prizeAmount"]) for won in every["winners"])
