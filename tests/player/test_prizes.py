"""Prizes: shown when their amount is certain, claimed once."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from flask.testing import FlaskClient
from sqlalchemy import update

from player.models.books import books
from player.models.players import Player
from player.models.round_money import settle_sales
from player.models.rounds import Round
from player.models.session import transaction
from tests.player.factories import TICKET_PRICE, a_player, a_prize, an_open_round

URL = "/api/player/prizes"


def settle() -> None:
    with transaction() as session:
        session.execute(update(Round).values(stage="payable"))
        settle_sales(session, 7)


def test_a_prize_is_claimed_as_the_interface_says(client: FlaskClient) -> None:
    an_open_round()
    ana, eva = a_player(balance=TICKET_PRICE), a_player()
    prize = a_prize(ana)
    settle()
    listed = client.get(URL, headers=ana.headers).json
    assert listed["count"] == 1
    shown = listed["prizes"][0]
    assert (shown["id"], shown["tier"], shown["amount"], shown["status"]) == (prize, 5, "5000000", "unclaimed")
    assert (shown["claimedAt"], shown["roundId"]) == (None, 7)
    assert client.get(f"{URL}/{prize}", headers=ana.headers).json == shown

    assert client.post(f"{URL}/{prize}/claim", headers=eva.headers).status_code == 404
    headers = ana.headers | {"Idempotency-Key": "mine"}
    answer = client.post(f"{URL}/{prize}/claim", headers=headers)
    assert answer.status_code == 200
    assert answer.json["success"] is True
    assert (answer.json["prize"]["id"], answer.json["prize"]["status"]) == (prize, "claimed")
    assert answer.json["balance"] == "5000000"
    again = client.post(f"{URL}/{prize}/claim", headers=headers)
    assert (again.data, again.headers["Idempotency-Replayed"]) == (answer.data, "true")
    assert client.post(f"{URL}/{prize}/claim", headers=ana.headers).json["code"] == "already_claimed"

    claimed = client.get(f"{URL}?status=claimed&roundId=7", headers=ana.headers).json["prizes"]
    assert claimed[0]["claimedAt"] == answer.json["prize"]["claimedAt"]
    assert client.get(f"{URL}?status=unclaimed", headers=ana.headers).json == {"prizes": [], "count": 0}
    (line,) = client.get("/api/player/transactions?type=prize", headers=ana.headers).json["transactions"]
    assert (line["amount"], line["reference"]) == ("5000000", shown["ticketId"])
    with transaction() as session:
        assert books(session).faults == ()


def test_fifty_claims_at_once_pay_once(client: FlaskClient) -> None:
    an_open_round()
    ana = a_player(balance=TICKET_PRICE)
    prize = a_prize(ana)
    settle()
    app = client.application

    def claim(_: int) -> int:
        return app.test_client().post(f"{URL}/{prize}/claim", headers=ana.headers).status_code

    with ThreadPoolExecutor(16) as threads:
        assert Counter(threads.map(claim, range(50))) == {200: 1, 409: 49}
    assert client.get("/api/player/balance", headers=ana.headers).json["balance"] == "5000000"


def test_a_prize_waits_for_its_amount_and_ends_at_its_deadline(client: FlaskClient) -> None:
    an_open_round()
    ana = a_player(balance=2 * TICKET_PRICE)
    open_, late = a_prize(ana, None), a_prize(ana)
    with transaction() as session:
        session.execute(update(Round).values(claim_deadline=datetime.now(UTC) - timedelta(seconds=1)))
    assert client.post(f"{URL}/{open_}/claim", headers=ana.headers).status_code == 404
    assert client.post(f"{URL}/{late}/claim", headers=ana.headers).json["code"] == "prize_expired"


def test_whoever_excluded_herself_still_gets_what_she_won(client: FlaskClient) -> None:
    an_open_round()
    ana = a_player(balance=TICKET_PRICE)
    prize = a_prize(ana)
    with transaction() as session:
        session.execute(update(Player).values(self_excluded_until=datetime.now(UTC) + timedelta(days=7)))
    assert client.post(f"{URL}/{prize}/claim", headers=ana.headers).json["balance"] == "5000000"
    asked = client.post(
        "/api/player/withdrawals", json={"amount": "5000000", "destination": "my bank"}, headers=ana.headers
    )
    assert asked.status_code == 201
    refused = client.post("/api/player/deposits", json={"amount": "5000000"}, headers=ana.headers)
    assert (refused.status_code, refused.json["code"]) == (403, "self_excluded")
