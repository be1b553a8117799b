"""Buying tickets: what is sold, what is refused and why, and what becomes of purchases that race."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import func, select, update
from werkzeug.test import TestResponse

from player.models.books import books
from player.models.limits import Limit
from player.models.players import Player
from player.models.rounds import Round
from player.models.session import snapshot, transaction
from player.models.tickets import Ticket
from tests.player.factories import NUMBERS, TICKET_PRICE, APlayer, a_player, an_open_round, close_sales

URL = "/api/player/tickets/purchase"


def buy(client: FlaskClient, who: APlayer, key: str | None = None, **changes: Any) -> TestResponse:
    headers = who.headers | ({"Idempotency-Key": key} if key else {})
    return client.post(URL, json={**NUMBERS, **changes}, headers=headers)


def all_at_once(times: int, ask: Callable[[FlaskClient, int], TestResponse], client: FlaskClient) -> list[Any]:
    """What each of ``times`` clients is answered, 16 of them asking at any moment."""
    app = client.application
    with ThreadPoolExecutor(16) as threads:
        return list(threads.map(lambda number: ask(app.test_client(), number), range(times)))


def codes(answers: list[Any]) -> Counter[Any]:
    return Counter(answer.json.get("code", answer.status_code) for answer in answers)


def sold() -> int:
    with transaction() as session:
        return session.scalars(select(func.count()).select_from(Ticket)).one()


def assert_books_hold() -> None:
    with snapshot() as session:
        assert books(session).faults == ()


def test_a_ticket_is_sold_as_the_interface_says(client: FlaskClient) -> None:
    an_open_round()
    ana = a_player(balance=2 * TICKET_PRICE)
    answer = buy(client, ana)
    assert answer.status_code == 201
    ticket = answer.json["ticket"]
    assert answer.json["balance"] == str(TICKET_PRICE)
    assert ticket["ticketId"].startswith("7-")
    assert {name: ticket[name] for name in NUMBERS} == NUMBERS
    assert (ticket["roundId"], ticket["status"], ticket["winnings"]) == (7, "active", None)

    assert client.get("/api/player/balance", headers=ana.headers).json == {
        "balance": "3000000",
        "currency": "USDC",
        "pendingWithdrawals": "0",
    }
    listed = client.get("/api/player/transactions?type=purchase", headers=ana.headers).json
    assert listed["count"] == 1
    line = listed["transactions"][0]
    assert (line["amount"], line["status"], line["reference"]) == ("-3000000", "completed", ticket["ticketId"])
    assert client.get(f"/api/player/transactions/{line['id']}", headers=ana.headers).json == line
    assert_books_hold()


def test_a_quick_pick_may_leave_the_numbers_to_us_or_bring_its_own(client: FlaskClient) -> None:
    an_open_round(odds_range=10)
    ana = a_player(balance=3 * TICKET_PRICE)
    ours = client.post(URL, json={"isQuickPick": True}, headers=ana.headers).json["ticket"]
    assert 1 <= ours["jackpotNumber"] <= 10
    assert 1 <= ours["bonus5"] <= 100
    hers = buy(client, ana, isQuickPick=True).json["ticket"]
    assert {name: hers[name] for name in NUMBERS} == NUMBERS | {"isQuickPick": True}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"jackpotNumber": 10_000_001}, "jackpotNumber"),
        ({"jackpotNumber": 0}, "jackpotNumber"),
        ({"bonus1": 1_000_001}, "bonus1"),
        ({"bonus5": 101}, "bonus5"),
        ({"bonus5": "5"}, "bonus5"),
        ({"isQuickPick": 1}, "isQuickPick"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_what_is_no_ticket_is_refused_field_by_field(client: FlaskClient, changes: Any, field: str) -> None:
    an_open_round()
    answer = buy(client, a_player(balance=TICKET_PRICE), **changes)
    assert answer.status_code == 422
    assert list(answer.json["details"]) == [field]


def test_numbers_are_given_all_or_not_at_all(client: FlaskClient) -> None:
    ana = a_player()
    for body, missing in (({"isQuickPick": True, "bonus1": 1}, 5), ({"isQuickPick": False}, 6)):
        answer = client.post(URL, json=body, headers=ana.headers)
        assert answer.status_code == 422
        assert len(answer.json["details"]) == missing


def test_tickets_are_sold_for_the_round_that_closes_first_or_for_the_one_named(client: FlaskClient) -> None:
    ana = a_player(balance=5 * TICKET_PRICE)
    assert (buy(client, ana).status_code, buy(client, ana).json["code"]) == (409, "no_open_round")
    an_open_round(8, sales_close_at=datetime.now(UTC) + timedelta(hours=3))
    an_open_round(7)
    assert buy(client, ana).json["ticket"]["roundId"] == 7
    assert buy(client, ana, roundId=8).json["ticket"]["roundId"] == 8
    assert buy(client, ana, roundId=9).status_code == 404
    close_sales(7)
    assert buy(client, ana, roundId=7).json["code"] == "sales_closed"
    assert buy(client, ana).json["ticket"]["roundId"] == 8


def test_two_hundred_purchases_with_money_for_ten_buy_ten(client: FlaskClient) -> None:
    an_open_round()
    ana = a_player(balance=10 * TICKET_PRICE + 1)

    def ask(own: FlaskClient, number: int) -> TestResponse:
        if number % 20 == 5:
            assert_books_hold()  # at any moment, not only when all is done
        return buy(own, ana)

    answers = all_at_once(200, ask, client)
    assert codes(answers) == {201: 10, "insufficient_funds": 190}
    assert sold() == 10
    assert_books_hold()


def test_fifty_purchases_under_one_key_are_one_ticket(client: FlaskClient) -> None:
    an_open_round()
    ana, eva = a_player(balance=9 * TICKET_PRICE), a_player(balance=9 * TICKET_PRICE)
    answers = all_at_once(50, lambda own, _: buy(own, ana, "k-1"), client)
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.data for answer in answers}) == 1
    assert sum(answer.headers.get("Idempotency-Replayed") == "true" for answer in answers) == 49
    assert buy(client, ana, "k-1", bonus1=9).json["code"] == "idempotency_key_reused"
    assert buy(client, ana, "k" * 129).json["code"] == "bad_idempotency_key"
    assert buy(client, eva, "k-1", bonus1=9).status_code == 201
    assert sold() == 2
    assert_books_hold()


def test_a_refused_purchase_may_be_tried_again_under_its_key(client: FlaskClient) -> None:
    ana = a_player(balance=TICKET_PRICE)
    assert buy(client, ana, "k").json["code"] == "no_open_round"
    an_open_round()
    assert buy(client, ana, "k").status_code == 201


def test_simultaneous_purchases_stay_within_a_limit(client: FlaskClient) -> None:
    an_open_round()
    ana = a_player(balance=20 * TICKET_PRICE)
    with transaction() as session:
        session.add(Limit(player_id=ana.id, period="day", amount=3 * TICKET_PRICE + 1))
    answers = all_at_once(20, lambda own, _: buy(own, ana), client)
    assert codes(answers) == {201: 3, "limit_reached": 17}
    assert_books_hold()


def test_what_races_with_a_self_exclusion_is_sold_before_it_or_refused(client: FlaskClient) -> None:
    an_open_round()
    ana = a_player(balance=60 * TICKET_PRICE)
    seen: list[int] = []

    def ask(own: FlaskClient, number: int) -> TestResponse:
        if number == 10:
            with transaction() as session:
                until = datetime.now(UTC) + timedelta(days=7)
                session.execute(update(Player).where(Player.id == ana.id).values(self_excluded_until=until))
                seen.append(session.scalars(select(func.count()).select_from(Ticket)).one())
        return buy(own, ana)

    answers = all_at_once(40, ask, client)
    found = codes(answers)
    assert found[201] + found["self_excluded"] == 40
    assert found["self_excluded"] >= 1
    assert found[201] == sold() == seen[0]
    assert_books_hold()


def test_what_races_with_the_end_of_sales_is_in_the_round_before_it_or_refused(client: FlaskClient) -> None:
    an_open_round()
    players = [a_player(balance=10 * TICKET_PRICE) for _ in range(8)]
    seen: list[int] = []

    def ask(own: FlaskClient, number: int) -> TestResponse:
        if number == 15:
            with transaction() as session:
                session.execute(update(Round).where(Round.id == 7).values(stage="closed"))
                seen.append(session.scalars(select(func.count()).select_from(Ticket)).one())
        return buy(own, players[number % 8])

    answers = all_at_once(60, ask, client)
    found = codes(answers)
    assert found[201] + found["sales_closed"] + found["no_open_round"] == 60
    assert found[201] == sold() == seen[0] < 60
    assert_books_hold()
