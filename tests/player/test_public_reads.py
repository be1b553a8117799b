"""What anybody sees: the round on sale, the jackpot and past results, from what the worker wrote down."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from flask.testing import FlaskClient

from player.models.chores import View
from player.models.session import transaction
from tests.player.factories import an_open_round
from tests.player.staff import a_busy_house, a_draw

JACKPOT = {
    "jackpot": "123456789012",
    "drawsSinceLastWin": 3,
    "lastWinRoundId": None,
    "cumulativeTickets": "12",
    "currentOddsRange": 10_000_000,
    "nextDrawTime": None,
    "nextDrawRoundId": None,
    "ticketPrice": 3_000_000,
    "updatedAt": "2026-01-02T03:04:05.678Z",
}


def the_jackpot(seconds_ago: int) -> None:
    with transaction() as session:
        session.add(View(name="jackpot", body=JACKPOT, fetched_at=datetime.now(UTC) - timedelta(seconds=seconds_ago)))


def test_the_round_on_sale_is_the_first_whose_sales_close(client: FlaskClient) -> None:
    assert client.get("/api/rounds/current").json["code"] == "no_open_round"
    now = datetime.now(UTC)
    an_open_round(1, sales_close_at=now - timedelta(seconds=1))
    an_open_round(2, stage="closed")
    an_open_round(3, sales_close_at=now + timedelta(minutes=2))
    an_open_round(4, sales_close_at=now + timedelta(minutes=1))
    shown = client.get("/api/rounds/current").json
    assert (shown["roundId"], shown["ticketPriceUsdc"], shown["oddsRange"]) == (4, 3_000_000, 10_000_000)
    assert shown["jackpot"] is None
    the_jackpot(7)
    assert client.get("/api/rounds/current").json["jackpot"]["jackpot"] == JACKPOT["jackpot"]


def test_the_jackpot_says_how_old_it_is(client: FlaskClient) -> None:
    unknown = client.get("/api/jackpot")
    assert (unknown.status_code, unknown.json["code"]) == (404, "not_known_yet")
    the_jackpot(7)
    shown = client.get("/api/jackpot").json
    assert (shown["jackpot"], shown["updatedAt"]) == (JACKPOT["jackpot"], JACKPOT["updatedAt"])
    assert shown["ageSeconds"] >= 7


def test_results_are_the_rounds_that_were_drawn(client: FlaskClient) -> None:
    a_busy_house()
    an_open_round(3, draw=a_draw(3, jackpotNumber=77))
    page = client.get("/api/results").json
    assert ([shown["roundId"] for shown in page["results"]], page["count"]) == ([3, 1], 2)
    assert [shown["roundId"] for shown in client.get("/api/results?limit=1&offset=1").json["results"]] == [1]
    shown = client.get("/api/results/3").json
    assert (shown["drawId"], shown["jackpotNumber"], shown["jackpotWinnerCount"]) == ("draw_3", 77, 0)
    assert shown["links"]["proof"] == "http://127.0.0.1:9/api/public/rounds/3/proof"
    winners = {each["tier"]: each["count"] for each in client.get("/api/results/1").json["ourWinners"]}
    assert winners == {0: 0, 1: 0, 2: 0, 3: 0, 4: 0, 5: 1}
    for unknown in ("2", "9"):
        assert client.get(f"/api/results/{unknown}").json["code"] == "not_found"
