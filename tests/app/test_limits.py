"""Rate limits: who is counted, what is left on every kind of answer, and what happens without Redis."""

from __future__ import annotations

import gzip
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import event
from werkzeug.test import TestResponse

from app import limits
from deploy.redis_server import RedisServer
from models.settings import SettingsError, read_settings, settings
from protocol.lifecycle import State
from tests.app.conftest import Caller, assert_error
from tests.factories import a_round, some_operators, take_part, take_to
from tests.polling import until

PUBLIC, OWN = "/api/public/jackpot", "/api/operator/me"
HEADERS = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
Make = Callable[..., FlaskClient]


@pytest.fixture
def app_with(house: None, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Make:
    """A client of an application with these settings; the limits are 3 and 5 an hour unless named."""
    from app import create_app

    def make(**changes: str) -> FlaskClient:
        small = {"RATE_LIMIT_PUBLIC": "3/hour", "RATE_LIMIT_AUTHENTICATED": "5/hour"}
        for name, value in (small | changes).items():
            monkeypatch.setenv(name, value)
        settings.cache_clear()
        return create_app().test_client()

    return make


@pytest.fixture
def key(house: None) -> str:
    """The API key of an operator."""
    return new_key("a")


def new_key(name: str) -> str:
    from models.credentials import issue_api_key
    from models.session import transaction
    from tests.factories import an_operator

    operator_id = an_operator(name)
    with transaction() as session:
        return issue_api_key(session, operator_id)


def ask(client: FlaskClient, path: str = PUBLIC, *, address: str = "192.0.2.1", **headers: str) -> TestResponse:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.get(path, headers=sent, environ_base={"REMOTE_ADDR": address})


def left(answer: TestResponse) -> tuple[int, int]:
    """The limit and what remains of it."""
    return int(answer.headers["X-RateLimit-Limit"]), int(answer.headers["X-RateLimit-Remaining"])


# What is published


def test_the_published_figures_are_the_defaults(app_with: Make, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RATE_LIMIT_PUBLIC", "RATE_LIMIT_AUTHENTICATED"):
        monkeypatch.delenv(name)
    assert read_settings().rate_limit_public == "60/minute"
    assert read_settings().rate_limit_authenticated == "120/minute"
    client = app_with(RATE_LIMIT_PUBLIC="60/minute", RATE_LIMIT_AUTHENTICATED="120/minute")
    assert left(ask(client)) == (60, 59)
    assert left(ask(client, OWN, X_Service_Key=key)) == (120, 119)


def test_the_limit_is_what_can_be_asked_and_then_comes_a_429(app_with: Make) -> None:
    client = app_with()
    assert [left(ask(client)) for _ in range(3)] == [(3, 2), (3, 1), (3, 0)]
    refused = ask(client)
    body = assert_error(refused, 429, "rate_limited")
    assert set(body) == {"error", "code"}
    assert left(refused) == (3, 0)
    assert 3590 <= int(refused.headers["Retry-After"]) <= 3601


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", PUBLIC, 200),
        ("HEAD", PUBLIC, 200),
        ("OPTIONS", PUBLIC, 200),
        ("POST", PUBLIC, 405),
        ("GET", "/api/public/nothing", 404),
        ("GET", "/nothing", 404),
        ("GET", "/api/operator/nothing", 404),
        ("GET", f"{PUBLIC}?unknown=1", 422),
        ("POST", "/api/public/apply", 415),
        ("GET", OWN, 401),
        ("GET", "/api/admin/applications", 401),
        ("GET", "/health", 200),
        ("GET", "/health/ready", 200),
    ],
)
def test_every_answer_says_what_is_left(app_with: Make, method: str, path: str, status: int) -> None:
    answer = app_with().open(path, method=method)
    assert answer.status_code == status
    assert all(len(answer.headers.getlist(name)) == 1 for name in HEADERS)
    assert left(answer) == ((3, 3) if path.startswith("/health") else (3, 2))
    assert "Retry-After" not in answer.headers


def test_an_answer_nobody_expected_says_what_is_left(app_with: Make) -> None:
    client = app_with(RATE_LIMIT_PUBLIC="3/hour")
    application: Flask = client.application

    def broken() -> str:
        raise ZeroDivisionError

    application.view_functions["public_jackpot.Jackpot"] = broken
    answer = ask(client)
    assert_error(answer, 500, "internal")
    assert left(answer) == (3, 2)


def test_an_answer_that_did_not_change_says_what_is_left(app_with: Make) -> None:
    client = app_with()
    application: Flask = client.application
    application.view_functions["public_jackpot.Jackpot"] = lambda: ("", 304)
    answer = ask(client)
    assert answer.status_code == 304
    assert left(answer) == (3, 2)


def test_a_stream_says_what_is_left(app_with: Make) -> None:
    operators = some_operators(1)
    round_id = a_round(operators)
    take_part(round_id, operators)
    take_to(round_id, State.DRAWN)
    answer = ask(app_with(), f"/api/public/rounds/{round_id}/tickets/{operators[0]}")
    assert answer.status_code == 200
    assert gzip.decompress(answer.data)
    assert left(answer) == (3, 2)


def test_an_answer_without_a_database_says_what_is_left(app_with: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    from models import session

    key = new_key("a")
    client = app_with(DATABASE_URL="postgresql://127.0.0.1:1/none")
    session.engine().dispose()
    session.engine.cache_clear()
    for path in PUBLIC, OWN:
        answer = ask(client, path, X_Service_Key=key)
        assert_error(answer, 503)
        assert all(name in answer.headers for name in HEADERS)


def test_the_reset_is_a_unix_time_or_seconds(app_with: Make) -> None:
    before = time.time()
    resets = {int(ask(app_with(), address="192.0.2.7").headers["X-RateLimit-Reset"]) for _ in range(3)}
    assert len(resets) == 1
    assert before + 3599 <= resets.pop() <= time.time() + 3601
    seconds = int(ask(app_with(RATE_LIMIT_RESET="seconds"), address="192.0.2.7").headers["X-RateLimit-Reset"])
    assert 3500 < seconds <= 3601


def test_a_window_ends_and_the_whole_budget_is_back(app_with: Make) -> None:
    client = app_with(RATE_LIMIT_PUBLIC="1/second")
    assert ask(client).status_code == 200
    assert until(lambda: ask(client).status_code == 200, within=5)


def test_health_is_never_limited_and_takes_nothing(app_with: Make) -> None:
    client = app_with()
    assert {ask(client, "/health").status_code for _ in range(9)} == {200}
    assert {ask(client, "/health/ready").status_code for _ in range(9)} == {200}
    assert left(ask(client)) == (3, 2)


# Who is counted


def test_two_addresses_have_a_budget_each(app_with: Make) -> None:
    client = app_with()
    ask(client)
    assert left(ask(client, address="192.0.2.2")) == (3, 2)


def test_the_paths_share_one_budget(app_with: Make) -> None:
    client = app_with()
    ask(client, "/nothing")
    ask(client, "/api/public/rounds")
    assert left(ask(client)) == (3, 0)


def test_a_key_is_counted_wherever_it_is_used_from(app_with: Make, key: str) -> None:
    client = app_with()
    assert left(ask(client, OWN, address="192.0.2.1", X_Service_Key=key)) == (5, 4)
    assert left(ask(client, OWN, address="192.0.2.2", X_Service_Key=key)) == (5, 3)
    assert left(ask(client, OWN, X_Service_Key=new_key("b"))) == (5, 4)


def test_an_access_token_is_counted_as_the_key_it_stands_for(app_with: Make, key: str) -> None:
    client = app_with()
    pair = client.post("/api/auth/operator/login", json={"apiKey": key})
    assert left(pair) == (3, 2), "a login is counted by address: its key is in the body"
    token = pair.get_json()["accessToken"]
    ask(client, OWN, X_Service_Key=key)
    assert left(ask(client, OWN, Authorization=f"Bearer {token}")) == (5, 3)


def test_an_admin_key_has_a_budget_of_its_own(app_with: Make, admin: Callable[[str], Caller]) -> None:
    headers = admin("reviewer").headers
    client = app_with()
    assert left(client.get("/api/admin/applications", headers=headers)) == (5, 4)
    assert left(client.post("/api/admin/rounds", json={}, headers=headers)) == (5, 3), "403 is counted, too"


def test_a_suspended_operator_is_counted_as_its_key(app_with: Make, key: str) -> None:
    from models.operators import Operator
    from models.session import transaction

    client = app_with()
    with transaction() as session:
        session.get_one(Operator, "op_a").active = False
    answer = ask(client, OWN, X_Service_Key=key)
    assert_error(answer, 403, "suspended")
    assert left(answer) == (5, 4)


def test_a_key_that_is_used_up_leaves_the_address_alone(app_with: Make, key: str) -> None:
    client = app_with()
    answers = [ask(client, OWN, X_Service_Key=key).status_code for _ in range(6)]
    assert answers == [200] * 5 + [429]
    assert left(ask(client)) == (3, 2)


def test_an_address_that_is_used_up_leaves_its_operators_alone(app_with: Make, key: str) -> None:
    client = app_with()
    assert [ask(client, OWN, X_Service_Key="sk_wrong").status_code for _ in range(4)] == [401] * 3 + [429]
    assert left(ask(client, OWN, X_Service_Key=key)) == (5, 4)


def test_wrong_credentials_look_the_same_whether_the_key_exists_or_not(app_with: Make, key: str) -> None:
    client = app_with()
    same_id = f"{key[:-1]}{'0' if key[-1] != '0' else '1'}"
    wrong = [same_id, f"sk_{'0' * 16}_{'0' * 64}", "nonsense"]
    answers = [ask(client, OWN, address=f"192.0.2.{place}", X_Service_Key=text) for place, text in enumerate(wrong)]
    assert {(left(answer), answer.text, *sorted(answer.headers.keys())) for answer in answers} == {
        ((3, 2), answers[0].text, *sorted(answers[0].headers.keys()))
    }


def test_a_flood_without_credentials_never_reaches_the_database(app_with: Make) -> None:
    from models.session import engine

    client = app_with()
    for _ in range(3):
        ask(client)
    used: list[object] = []
    event.listen(engine(), "checkout", lambda *connection: used.append(connection))
    assert {ask(client, path).status_code for path in (PUBLIC, OWN, "/api/public/rounds", "/nothing")} == {429}
    assert ask(client, OWN, X_Service_Key="made up").status_code == 429
    assert ask(client, OWN, Authorization="Bearer made.up.entirely").status_code == 429
    assert used == []
    assert ask(client, address="192.0.2.2").status_code == 200
    assert len(used) == 1


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", "unknown"),
        (None, "unknown"),
        ("anything, really", "unknown"),
    ],
)
def test_an_address_is_counted_by_what_one_customer_has(address: str | None, network: str) -> None:
    assert limits.client_network(address) == network


@pytest.mark.parametrize(
    ("hops", "forwarded", "counted"),
    [
        ("0", "198.51.100.1", "192.0.2.1"),
        ("1", "198.51.100.1", "198.51.100.1"),
        ("1", "203.0.113.66, 198.51.100.1", "198.51.100.1"),
        ("2", "203.0.113.66, 198.51.100.1, 10.0.0.1", "198.51.100.1"),
        ("2", "198.51.100.1", "192.0.2.1"),  # it came past one of the two: nothing in it can be believed
    ],
)
def test_only_what_trusted_hops_wrote_says_who_is_counted(
    app_with: Make, redis_url: str, hops: str, forwarded: str, counted: str
) -> None:
    ask(app_with(TRUSTED_HOPS=hops), X_Forwarded_For=forwarded)
    assert [name.split("/")[1] for name in counts(redis_url)] == [f"ip:{counted}"]


def test_a_spoofed_address_gains_nothing(app_with: Make) -> None:
    client = app_with()
    answers = [ask(client, X_Forwarded_For=f"198.51.100.{n}", X_Real_Ip=f"198.51.100.{n}") for n in range(4)]
    assert [answer.status_code for answer in answers] == [200] * 3 + [429]


def counts(redis_url: str) -> list[str]:
    """What is counted in Redis."""
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        return [str(name) for name in client.scan_iter("LIMITS:*")]


# Redis


def test_all_web_processes_share_one_budget(app_with: Make) -> None:
    one, other = app_with(), app_with()
    assert [left(ask(client)) for client in (one, other, one)] == [(3, 2), (3, 1), (3, 0)]
    assert ask(other).status_code == 429


def test_what_is_counted_is_forgotten_when_its_window_ends(app_with: Make, redis_url: str) -> None:
    client = app_with(RATE_LIMIT_PUBLIC="3/second")
    ask(client)
    until(lambda: not counts(redis_url), within=5)


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a Redis that accepts connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"redis://127.0.0.1:{server.getsockname()[1]}"


def test_without_redis_requests_go_on_at_once_and_are_still_limited(app_with: Make, silent: str) -> None:
    for nowhere in "redis://127.0.0.1:1", silent:
        client = app_with(REDIS_URL=nowhere)
        began = time.monotonic()
        answers = [ask(client) for _ in range(100)]
        # A request that waited out a connection's default patience would take seconds, a hundred of them minutes.
        assert time.monotonic() - began < 5
        assert [answer.status_code for answer in answers] == [200] * 3 + [429] * 97
        assert [left(answer)[1] for answer in answers[:4]] == [2, 1, 0, 0]
        assert int(answers[-1].headers["Retry-After"]) > 3500


@pytest.fixture
def mortal() -> Iterator[RedisServer]:
    """A Redis of this test's own, to be killed."""
    # Not tmp_path: a socket's path must be short.
    with tempfile.TemporaryDirectory() as folder:
        sockets = Path(folder) / "redis"
        sockets.mkdir()
        server = RedisServer(sockets, Path(folder) / "redis.log")
        server.start()
        yield server
        server.stop()


def test_redis_may_go_and_come_back(app_with: Make, mortal: RedisServer) -> None:
    client = app_with(REDIS_URL=mortal.url, RATE_LIMIT_PUBLIC="1000000/hour")
    assert left(ask(client)) == (1_000_000, 999_999)
    assert counts(mortal.url)
    mortal.kill()
    assert left(ask(client)) == (1_000_000, 999_999), "now in memory, which has not seen the first"
    assert left(ask(client)) == (1_000_000, 999_998)
    mortal.start()
    assert until(lambda: ask(client).status_code == 200 and counts(mortal.url), within=10)


# Settings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RATE_LIMIT_PUBLIC", "many"),
        ("RATE_LIMIT_PUBLIC", "0/minute"),
        ("RATE_LIMIT_AUTHENTICATED", "120 per fortnight"),
        ("RATE_LIMIT_AUTHENTICATED", "60/minute;5/second"),
        ("RATE_LIMIT_RESET", "never"),
        ("TRUSTED_HOPS", "-1"),
        ("TRUSTED_HOPS", "all"),
    ],
)
def test_a_setting_that_means_nothing_stops_the_start(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=name):
        read_settings()
