"""Interface sections 2.12 and 4.4: the API that an operator hosts for its players, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import select

from tests.contract.fields import NUMBERS
from tests.contract.player_fields import (
    BALANCE,
    BALANCE_OURS,
    CLAIMED,
    LIMITS,
    LIMITS_OURS,
    LOGGED_IN,
    PLAYER,
    PRIZE,
    PRIZE_OURS,
    TICKET,
    TICKET_OURS,
    TOKENS,
    TRANSACTION,
)
from tests.contract.player_world import PASSWORD, Person, PlayerWorld, player_world
from tests.contract.shapes import MICRO, NULL, NUMBER, TIMESTAMP, assert_fields, assert_is, each, exactly, object_of
from tests.contract.world import RANGES
from tests.player.conftest import node_template  # noqa: F401 - a fixture
from tests.player.factories import TICKET_PRICE, an_open_round, give_money

ROUND, PAID_ROUND = 7, 8
HIGHEST = dict(zip(NUMBERS, RANGES, strict=True))
PICK: dict[str, Any] = {**dict.fromkeys(NUMBERS, 1), "isQuickPick": False}
BOUGHT = {**TICKET, **TICKET_OURS}

ROWS = {
    "POST /api/auth/register": None,
    "POST /api/auth/login": None,
    "POST /api/auth/refresh": None,
    "GET /api/auth/me": "Bearer",
    "GET /api/player/balance": "Bearer",
    "POST /api/player/tickets/purchase": "Bearer",
    "GET /api/player/tickets": "Bearer",
    "GET /api/player/prizes": "Bearer",
    "POST /api/player/prizes/1/claim": "Bearer",
    "GET /api/player/transactions": "Bearer",
    "GET /api/player/limits": "Bearer",
    "POST /api/player/limits": "Bearer",
    "POST /api/player/self-exclusion": "Bearer",
}
"""The rows of the table, each with its column "Auth"."""


@pytest.fixture(scope="module")
def node(node_template: str) -> Iterator[PlayerWorld]:  # noqa: F811 - the fixture
    """The node, with a round on sale and one that has paid."""
    with player_world(node_template) as world:
        an_open_round(ROUND)
        yield world


@pytest.fixture
def ana(node: PlayerWorld) -> Person:
    """A player of this test alone, who has money for ten tickets."""
    person = node.register()
    give_money(person.id, 10 * TICKET_PRICE)
    return person


@pytest.fixture
def winner(node: PlayerWorld, ana: Person) -> Person:
    """A player with a ticket that won 5 USDC and can be claimed."""
    from player.models.prizes import Prize
    from player.models.rounds import Round
    from player.models.session import transaction
    from player.models.tickets import Ticket

    with transaction() as session:
        known = session.get(Round, PAID_ROUND) is not None
    if not known:
        an_open_round(PAID_ROUND)
    with transaction() as session:
        row = Ticket(
            ticket_id=f"{PAID_ROUND}-{ana.id}",
            player_id=ana.id,
            round_id=PAID_ROUND,
            price=TICKET_PRICE,
            is_quick_pick=True,
            **dict.fromkeys(("jackpot_number", *NUMBERS[1:]), 1),
        )
        session.add(row)
        session.flush()
        row.status, row.winnings = "won", 5_000_000
        session.add(Prize(ticket=row.id, player_id=ana.id, round_id=PAID_ROUND, tier=5, amount=5_000_000))
    return ana


@each("row", ROWS)
def test_4_4_auth__row(node: PlayerWorld, row: str) -> None:
    method, path = row.split()
    if ROWS[row] is None:
        assert node.call(method, path, {}).status_code == 422
        return
    body = {} if method == "POST" else None
    for headers in ({}, {"Authorization": "Bearer x"}, {"Authorization": "Basic x"}):
        node.refused(401, method, path, body, headers)


@each("row", ROWS)
def test_4_4_row_takes_its_own_method(node: PlayerWorld, ana: Person, row: str) -> None:
    method, path = row.split()
    both = path == "/api/player/limits"
    for other in {"PUT", "PATCH", "DELETE", "GET", "POST"} - ({"GET", "POST"} if both else {method}):
        assert node.call(other, path, headers=ana.headers).status_code == 405


def test_4_4__post_register(node: PlayerWorld) -> None:
    form = {"email": "Zoe@example.com", "password": PASSWORD, "displayName": "Zoe"}
    answer = node.call("POST", "/api/auth/register", form)
    assert answer.status_code == 201
    assert_fields(answer.json, LOGGED_IN)
    shown = answer.json["player"]
    assert (shown["displayName"], shown["kycLevel"]) == ("Zoe", "none")
    node.refused(409, "POST", "/api/auth/register", form | {"email": "zoe@EXAMPLE.com"})
    for name in form:
        for wrong in ({name: None}, {name: 7}, {name: ""}):
            told = node.refused(422, "POST", "/api/auth/register", form | {"email": "new@example.com"} | wrong)
            assert list(told["details"]) == [name]
    assert list(node.refused(422, "POST", "/api/auth/register", form | {"more": 1})["details"]) == ["more"]


def test_4_4__post_login(node: PlayerWorld, ana: Person) -> None:
    form = {"email": ana.email, "password": PASSWORD}
    answer = node.call("POST", "/api/auth/login", form)
    assert answer.status_code == 200
    assert_fields(answer.json, LOGGED_IN)
    assert answer.json["player"] == ana.shown["player"]
    for wrong in ({"password": "another password"}, {"email": "nobody@example.com"}):
        node.refused(401, "POST", "/api/auth/login", form | wrong)


def test_4_4__post_refresh(node: PlayerWorld, ana: Person) -> None:
    token = {"refreshToken": ana.shown["tokens"]["refreshToken"]}
    answer = node.call("POST", "/api/auth/refresh", token)
    assert answer.status_code == 200
    assert_fields(answer.json, TOKENS)
    assert answer.json["refreshToken"] != token["refreshToken"]
    node.refused(401, "POST", "/api/auth/refresh", token)


def test_4_4__get_me(ana: Person) -> None:
    assert_fields(ana.get("/api/auth/me"), PLAYER)


def test_4_4__get_balance(ana: Person) -> None:
    shown = ana.get("/api/player/balance")
    assert_fields(shown, {**BALANCE, **BALANCE_OURS})
    assert shown["balance"] == str(10 * TICKET_PRICE)


def test_4_4__post_purchase(ana: Person) -> None:
    bought = ana.post("/api/player/tickets/purchase", PICK, 201)
    assert_fields(bought, {"ticket": object_of(BOUGHT), "balance": MICRO})
    assert {name: bought["ticket"][name] for name in NUMBERS} == dict.fromkeys(NUMBERS, 1)
    assert (bought["ticket"]["roundId"], bought["ticket"]["status"], bought["ticket"]["winnings"]) == (
        ROUND,
        "active",
        None,
    )
    assert bought["balance"] == str(9 * TICKET_PRICE)


def test_4_4__purchase_takes_the_numbers_of_2_10(node: PlayerWorld, ana: Person) -> None:
    highest = ana.post("/api/player/tickets/purchase", {**HIGHEST, "isQuickPick": True}, 201)["ticket"]
    assert {name: highest[name] for name in NUMBERS} == HIGHEST
    wrong: list[tuple[str, Any]] = [
        *((name, value) for name in NUMBERS for value in (0, -1, HIGHEST[name] + 1, 1.5, "1", True, None)),
        *(("isQuickPick", value) for value in (1, 0, "true", None)),
    ]
    for name, value in wrong:
        told = node.refused(422, "POST", "/api/player/tickets/purchase", PICK | {name: value}, ana.headers)
        if name != "jackpotNumber" or value != HIGHEST[name] + 1:
            assert list(told["details"]) == [name], (name, value)
    for name in PICK:
        lacking = {other: value for other, value in PICK.items() if other != name}
        told = node.refused(422, "POST", "/api/player/tickets/purchase", lacking, ana.headers)
        assert list(told["details"]) == [name]
    assert ana.get("/api/player/balance")["balance"] == str(9 * TICKET_PRICE)


def test_4_4__purchase_needs_money(node: PlayerWorld) -> None:
    poor = node.register()
    node.refused(409, "POST", "/api/player/tickets/purchase", PICK, poor.headers)


def test_4_4__get_tickets(node: PlayerWorld, winner: Person) -> None:
    for _ in range(2):
        winner.post("/api/player/tickets/purchase", PICK, 201)
    page = winner.get("/api/player/tickets")
    assert_is(page["tickets"][0], object_of(BOUGHT))
    assert set(page) == {"tickets", "count"}
    found = {
        "": 3,
        "?status=active": 2,
        "?status=won": 1,
        "?status=lost": 0,
        f"?roundId={ROUND}": 2,
        f"?roundId={PAID_ROUND}&status=won": 1,
        "?limit=1": 1,
        "?limit=2&offset=2": 1,
        "?offset=3": 0,
        "?limit=200": 3,
    }
    for query, count in found.items():
        page = winner.get(f"/api/player/tickets{query}")
        assert (len(page["tickets"]), page["count"]) == (count, count), query
    for query in ("status=x", "roundId=x", "roundId=0", "limit=0", "limit=201", "limit=x", "offset=-1", "more=1"):
        name = query.partition("=")[0]
        assert list(node.refused(422, "GET", f"/api/player/tickets?{query}", None, winner.headers)["details"]) == [name]


def test_4_4__get_prizes(winner: Person, node: PlayerWorld) -> None:
    page = winner.get("/api/player/prizes")
    assert set(page) == {"prizes", "count"}
    assert page["count"] == 1
    assert_fields(page["prizes"][0], {**PRIZE, **PRIZE_OURS})
    shown = page["prizes"][0]
    assert (shown["tier"], shown["amount"], shown["status"], shown["claimedAt"]) == (5, "5000000", "unclaimed", None)
    assert node.register().get("/api/player/prizes") == {"prizes": [], "count": 0}


def test_4_4__post_claim(node: PlayerWorld, winner: Person) -> None:
    (prize,) = winner.get("/api/player/prizes")["prizes"]
    path = f"/api/player/prizes/{prize['id']}/claim"
    node.refused(404, "POST", path, None, node.register().headers)
    claimed = winner.post(path)
    assert_fields(claimed, {"success": exactly(True), "prize": object_of(CLAIMED), "balance": MICRO})
    assert claimed["prize"]["id"] == prize["id"]
    assert claimed["balance"] == str(10 * TICKET_PRICE + 5_000_000)
    node.refused(409, "POST", path, None, winner.headers)
    (after,) = winner.get("/api/player/prizes")["prizes"]
    assert (after["status"], after["claimedAt"]) == ("claimed", claimed["prize"]["claimedAt"])
    node.refused(404, "POST", "/api/player/prizes/999999/claim", None, winner.headers)


def test_4_4__get_transactions(node: PlayerWorld, winner: Person) -> None:
    bought = winner.post("/api/player/tickets/purchase", PICK, 201)["ticket"]
    (prize,) = winner.get("/api/player/prizes")["prizes"]
    winner.post(f"/api/player/prizes/{prize['id']}/claim")
    page = winner.get("/api/player/transactions")
    assert set(page) == {"transactions", "count"}
    for shown in page["transactions"]:
        assert_fields(shown, TRANSACTION)
    told = [(shown["type"], shown["amount"], shown["status"]) for shown in page["transactions"]]
    assert told == [
        ("prize", "5000000", "completed"),
        ("purchase", str(-TICKET_PRICE), "completed"),
        ("deposit", str(10 * TICKET_PRICE), "completed"),
    ]
    assert page["transactions"][1]["reference"] == bought["ticketId"]
    found = {"?type=purchase": 1, "?type=deposit": 1, "?type=withdrawal": 0, "?type=prize": 1, "?limit=2&offset=2": 1}
    for query, count in found.items():
        assert winner.get(f"/api/player/transactions{query}")["count"] == count, query
    for query in ("type=x", "limit=0", "limit=201", "offset=-1", "more=1"):
        node.refused(422, "GET", f"/api/player/transactions?{query}", None, winner.headers)


def test_4_4__pages_hold_50_from_0(node: PlayerWorld, ana: Person) -> None:
    for _ in range(52):
        give_money(ana.id, TICKET_PRICE)
    first = ana.get("/api/player/transactions")["transactions"]
    assert len(first) == 50
    assert ana.get("/api/player/transactions?limit=50&offset=0")["transactions"] == first
    for _ in range(52):
        buy(ana)
    assert ana.get("/api/player/tickets")["count"] == 50


def buy(person: Person) -> None:
    """A ticket, without its price: only its row matters here."""
    from player.models.session import transaction
    from player.models.tickets import Ticket

    with transaction() as session:
        names = ("jackpot_number", *NUMBERS[1:])
        name = f"{ROUND}-{person.id}-{session.scalars(select(Ticket.id).order_by(Ticket.id.desc())).first()}"
        known = {"ticket_id": name, "player_id": person.id, "round_id": ROUND, "price": TICKET_PRICE}
        session.add(Ticket(**dict.fromkeys(names, 1), **known, is_quick_pick=True))


def test_4_4__get_limits(ana: Person) -> None:
    shown = ana.get("/api/player/limits")
    assert_fields(shown, {**LIMITS, **LIMITS_OURS})
    assert [shown[name] for name in LIMITS] == [None, None, None, None]


def test_4_4__post_limits(node: PlayerWorld, ana: Person) -> None:
    answer = ana.post("/api/player/limits", {"dailyLimit": "6000000", "weeklyLimit": "9000000"})
    assert_fields(answer, {"success": exactly(True), "limits": object_of({**LIMITS, **LIMITS_OURS})})
    assert [answer["limits"][name] for name in ("dailyLimit", "weeklyLimit", "monthlyLimit")] == [
        "6000000",
        "9000000",
        None,
    ]
    assert ana.get("/api/player/limits") == answer["limits"]
    for name in ("dailyLimit", "weeklyLimit", "monthlyLimit"):
        for wrong in (1, "-1", "1.5", "x", "01", True):
            told = node.refused(422, "POST", "/api/player/limits", {name: wrong}, ana.headers)
            assert list(told["details"]) == [name]
    for _ in range(2):
        ana.post("/api/player/tickets/purchase", PICK, 201)
    node.refused(409, "POST", "/api/player/tickets/purchase", PICK, ana.headers)


def test_4_4__post_self_exclusion(node: PlayerWorld, ana: Person) -> None:
    for wrong in (0, -1, 1.5, "7", None, True):
        told = node.refused(422, "POST", "/api/player/self-exclusion", {"durationDays": wrong}, ana.headers)
        assert list(told["details"]) == ["durationDays"]
    answer = ana.post("/api/player/self-exclusion", {"durationDays": 7})
    assert_fields(answer, {"success": exactly(True), "selfExclusionUntil": TIMESTAMP})
    assert ana.get("/api/player/limits")["selfExclusionUntil"] == answer["selfExclusionUntil"]
    node.refused(403, "POST", "/api/player/tickets/purchase", PICK, ana.headers)
    node.refused(409, "POST", "/api/player/self-exclusion", {"durationDays": 1}, ana.headers)


def test_2_12_id_is_a_number_and_winnings_are_null_when_none(ana: Person) -> None:
    ticket = ana.post("/api/player/tickets/purchase", PICK, 201)["ticket"]
    assert_is(ticket["id"], NUMBER)
    assert_is(ticket["winnings"], NULL)
