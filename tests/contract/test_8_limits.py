"""Interface section 8: constants and page sizes. What limits the rate of requests stands in test_8_rate_limits.py."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.contract.fields import NUMBERS
from tests.contract.shapes import each
from tests.contract.world import OPEN, RANGES, Party, World, ticket

SECRETS = {"ENCRYPTION_KEYS": "unused" * 7 + "U=", "JWT_KEYS": "unused:" + "unused" * 6}
ENGINES = {"DATABASE_URL": "postgresql://nowhere/none", "REDIS_URL": "redis://nowhere"}


def test_8_constant__pagination_of_rounds_is_50_from_0(world: World) -> None:
    newest = world.read("/api/public/rounds?limit=1")["rounds"][0]["id"]
    for _ in range(51 - newest):
        newest = world.open_round([world.parties["dora"]])
    listed = [shown["id"] for shown in world.read("/api/public/rounds")["rounds"]]
    assert listed == list(range(newest, newest - 50, -1))


def test_8_constant__pagination_of_history_is_20_from_0(world: World) -> None:
    shown = world.read("/api/public/history")
    assert (shown["limit"], shown["offset"]) == (20, 0)


def test_8_constant__ticket_price_is_3000000(world: World) -> None:
    assert world.read(f"/api/public/rounds/{OPEN}")["ticketPriceUsdc"] == 3_000_000
    assert world.read("/api/public/jackpot")["ticketPrice"] == 3_000_000


def test_8_constant__access_token_lifetime_is_900_seconds(world: World, alba: Party) -> None:
    assert world.log_in(alba)["expiresIn"] == 900


def test_8_constant__refresh_token_lifetime_is_7_days(world: World, newcomer: Party) -> None:
    world.log_in(newcomer)
    query = (
        "SELECT round(extract(epoch FROM expires_at - created_at) / 3600) FROM refresh_tokens WHERE operator_id = %s"
    )
    assert world.rows(query, newcomer.id) == [(7 * 24,)]


def test_8_constant__webhook_deadline_is_30_seconds_and_attempts_are_3(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as nobody sets them otherwise, in the sandbox and outside of it."""
    for name in ("WEBHOOK_TIMEOUT_SECONDS", "WEBHOOK_ATTEMPTS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (SECRETS | ENGINES).items():
        monkeypatch.setenv(name, value)
    from models.settings import read_settings

    for sandbox in ("0", "1"):
        monkeypatch.setenv("SANDBOX", sandbox)
        settings = read_settings()
        assert (settings.webhook_timeout_seconds, settings.webhook_attempts) == (30, 3)


@each("number", NUMBERS)
def test_8_ticket_number__range(world: World, newcomer: Party, fresh_round: Callable[[], int], number: str) -> None:
    highest = dict(zip(NUMBERS, RANGES, strict=True))[number]
    round_id = fresh_round()
    for value, status in ((0, 422), (1, 200), (highest, 200), (highest + 1, 422)):
        one = ticket(value) | {number: value}
        body = {"roundId": round_id, "tickets": [one]}
        assert world.post("/api/operator/tickets", body, newcomer.headers).status_code == status


def test_8_limit__page_size_is_200_at_most(world: World) -> None:
    for path in ("rounds", "history"):
        assert world.get(f"/api/public/{path}?limit=200").status_code == 200
        assert world.get(f"/api/public/{path}?limit=201").status_code == 422


def test_8_limit__tickets_per_submission_are_50000_at_most(
    world: World, newcomer: Party, fresh_round: Callable[[], int]
) -> None:
    round_id = fresh_round()
    one = {**dict.fromkeys(NUMBERS, 1), "isQuickPick": True}
    tickets = [{"ticketId": str(place), **one} for place in range(50_001)]
    path = "/api/operator/tickets"
    refused = world.post(path, {"roundId": round_id, "tickets": tickets}, newcomer.headers)
    assert refused.status_code == 422
    assert world.read(f"/api/public/rounds/{round_id}")["totalTickets"] == 0
    accepted = world.send(path, {"roundId": round_id, "tickets": tickets[:-1]}, newcomer.headers)
    assert accepted["ticketsAccepted"] == 50_000


def test_8_limit__request_body_is_1_MiB_at_most_and_16_MiB_for_tickets(world: World, alba: Party) -> None:
    mib = 1024 * 1024
    assert world.announce("/api/operator/check-tickets", mib + 1, alba.headers)[0] == 413
    assert world.announce("/api/operator/tickets", 16 * mib + 1, alba.headers)[0] == 413
    large = {"roundId": OPEN, "tickets": [ticket(0)], "padding": "x" * (2 * mib)}
    assert world.post("/api/operator/tickets", large, alba.headers).status_code == 422
