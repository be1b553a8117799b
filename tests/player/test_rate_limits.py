"""How often may be asked: every row of the published table (interface section 8), and what happens without Redis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient

from player.settings import settings
from tests.player.factories import PASSWORD, a_player, registered

HEADERS = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")

Make = Callable[..., FlaskClient]


@pytest.fixture
def limited(node: str, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Makes a client of a node that counts, with other settings if need be."""

    def make(**changes: str) -> FlaskClient:
        from player.api.factory import create_app

        for name, value in {"RATE_LIMITS": "on", **changes}.items():
            monkeypatch.setenv(name, value)
        settings.cache_clear()
        return create_app().test_client()

    return make


def _ask(client: FlaskClient, row: tuple[str, str], address: str, headers: dict[str, str] | None = None) -> Any:
    method, path = row
    return client.open(path, method=method, headers=headers, environ_base={"REMOTE_ADDR": address})


def _answered(ask: Callable[[], Any]) -> int:
    """How many requests are answered before the first 429."""
    answered = 0
    while (answer := ask()).status_code != 429:
        answered += 1
        assert answered <= 200
    assert set(answer.json) == {"error", "code"}
    assert answer.json["code"] == "rate_limited"
    assert answer.headers["X-RateLimit-Remaining"] == "0"
    assert 1 <= int(answer.headers["Retry-After"]) <= 60
    return answered


BY_ADDRESS = {
    ("POST", "/api/auth/register"): 5,
    ("POST", "/api/auth/refresh"): 20,
    ("POST", "/api/auth/password/forgot"): 5,
    ("POST", "/api/auth/password/reset"): 5,
    ("POST", "/api/auth/logout"): 60,
    ("POST", "/api/admin/nothing"): 30,
}
BY_PLAYER = {
    ("GET", "/api/player/profile"): 60,
    ("POST", "/api/player/limits"): 20,
    ("POST", "/api/player/tickets/purchase"): 10,
    ("PUT", "/api/auth/password"): 5,
    # As many, and not the same.
    ("GET", "/api/auth/me"): 60,
}


def test_the_published_figures_by_address(limited: Make) -> None:
    client = limited()
    for row, figure in BY_ADDRESS.items():
        assert _answered(lambda row=row: _ask(client, row, "192.0.2.1")) == figure, row
        assert _ask(client, row, "192.0.2.2").status_code != 429, row
    # Registering and logging in are one budget.
    assert _ask(client, ("POST", "/api/auth/login"), "192.0.2.1").status_code == 429


def test_the_published_figures_by_player(limited: Make) -> None:
    client, ana, bob = limited(), a_player(), a_player()
    for row, figure in BY_PLAYER.items():
        assert _answered(lambda row=row: _ask(client, row, "192.0.2.1", ana.headers)) == figure, row
        assert _ask(client, row, "192.0.2.2", bob.headers).status_code != 429, row
    # A player takes her count along; the address she leaves behind is not hers alone.
    assert _ask(client, ("GET", "/api/player/profile"), "192.0.2.3", ana.headers).status_code == 429
    assert _ask(client, ("GET", "/api/player/profile"), "192.0.2.1", bob.headers).status_code == 200


def test_a_made_up_token_is_counted_by_address(limited: Make) -> None:
    client = limited()
    tokens = iter(range(100))
    row = ("GET", "/api/player/profile")
    assert _answered(lambda: _ask(client, row, "192.0.2.1", {"Authorization": f"Bearer {next(tokens)}"})) == 60


def test_what_is_left_is_said_on_every_answer(limited: Make) -> None:
    client, who = limited(), a_player()
    asked = {
        ("GET", "/api/auth/me"): 200,
        ("GET", "/nothing"): 404,
        ("DELETE", "/api/auth/login"): 405,
        ("POST", "/api/auth/login"): 415,
        ("GET", "/api/auth/me?unknown=1"): 422,
    }
    for row, status in asked.items():
        answer = _ask(client, row, "192.0.2.1", who.headers)
        assert answer.status_code == status, row
        assert [name for name in HEADERS if name not in answer.headers] == [], row
        assert "Retry-After" not in answer.headers, row
    refused = _ask(client, ("GET", "/api/player/profile"), "192.0.2.1")
    assert refused.status_code == 401
    assert refused.headers["X-RateLimit-Limit"] == "60"


def test_a_customer_of_ipv6_is_her_whole_network(limited: Make) -> None:
    client = limited()
    row = ("POST", "/api/auth/login")
    hosts = iter(range(1, 100))
    assert _answered(lambda: _ask(client, row, f"2001:db8::{next(hosts):x}")) == 5
    assert _ask(client, row, "2001:db8:0:1::1").status_code == 415


def test_an_address_is_believed_from_our_own_proxies_only(limited: Make) -> None:
    row = ("POST", "/api/auth/login")
    client = limited()
    names = iter(range(1, 100))
    assert _answered(lambda: _ask(client, row, "192.0.2.1", {"X-Forwarded-For": f"198.51.100.{next(names)}"})) == 5
    client = limited(TRUSTED_HOPS="1")
    for name in range(10):
        assert _ask(client, row, "192.0.2.9", {"X-Forwarded-For": f"203.0.113.{name}"}).status_code == 415
    for form in ("203.0.114.{}:5060", "[2001:db8:0:{}::1]:5060", "[2001:db8:1:{}::1]"):
        for name in range(6):
            assert _ask(client, row, "192.0.2.9", {"X-Forwarded-For": form.format(name)}).status_code == 415
    ports = iter(range(1, 100))
    assert _answered(lambda: _ask(client, row, "192.0.2.9", {"X-Forwarded-For": f"203.0.115.1:{next(ports)}"})) == 5


def test_without_redis_everything_is_served_and_each_process_counts(limited: Make) -> None:
    client, who = limited(REDIS_URL="redis://127.0.0.1:9"), a_player()
    assert _ask(client, ("GET", "/api/player/profile"), "192.0.2.1", who.headers).status_code == 200
    guess = {"email": "ana@example.com", "password": "a wrong guess"}
    assert client.post("/api/auth/login", json=guess, environ_base={"REMOTE_ADDR": "192.0.2.1"}).status_code == 401
    assert _answered(lambda: _ask(client, ("POST", "/api/auth/login"), "192.0.2.1")) == 4


def test_many_who_guess_one_password_wait_and_its_owner_does_not(
    limited: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    from player.api import guesses

    client = limited()
    registered(client)
    addresses = (f"203.0.113.{host}" for host in range(1, 200))
    monkeypatch.setattr(guesses, "UNNOTICED", 1)
    monkeypatch.setattr(guesses, "TRIES", 1)

    def login(address: str, known: str = "a wrong guess", email: str = "ANA@example.com") -> Any:
        sent = {"email": email, "password": known}
        return client.post("/api/auth/login", json=sent, environ_base={"REMOTE_ADDR": address})

    for email in ("ana@example.com", "nobody@example.com"):
        assert login(next(addresses), email=email).status_code == 401
        network = next(addresses)
        assert login(network, email=email).status_code == 401
        refused = login(network, email=email)
        assert (refused.status_code, refused.json["code"]) == (429, "rate_limited")
        assert 1 <= int(refused.headers["Retry-After"]) <= 1800
    # Where she registered she is always heard, and so she is at once anywhere else: however many guess.
    assert login("127.0.0.1").status_code == 401
    assert login("127.0.0.1", PASSWORD).status_code == 200
    new = next(addresses)
    assert login(new, PASSWORD).status_code == 200
    assert [login(new).status_code for _ in range(2)] == [401, 401]
