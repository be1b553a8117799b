"""Rate limits: what is left, said on every kind of answer; and what happens without Redis."""

from __future__ import annotations

import gzip
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from flask import Flask

from deploy.redis_server import RedisServer
from models.settings import SettingsError, read_settings
from protocol.lifecycle import State
from tests.app.conftest import assert_error
from tests.app.limited import OWN, PUBLIC, Make, ask, counts, left, new_key
from tests.factories import a_played_round, some_operators
from tests.polling import until

HEADERS = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")


def test_the_published_figures_are_the_defaults(app_with: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RATE_LIMIT_PUBLIC", "RATE_LIMIT_AUTHENTICATED"):
        monkeypatch.delenv(name)
    assert read_settings().rate_limit_public == "60/minute"
    assert read_settings().rate_limit_authenticated == "120/minute"
    client = app_with(RATE_LIMIT_PUBLIC="60/minute", RATE_LIMIT_AUTHENTICATED="120/minute")
    assert left(ask(client)) == (60, 59)
    assert left(ask(client, OWN, X_Service_Key=new_key("a"))) == (120, 119)


def test_the_limit_is_what_can_be_asked_and_then_comes_a_429(app_with: Make) -> None:
    client = app_with()
    assert [left(ask(client)) for _ in range(3)] == [(3, 2), (3, 1), (3, 0)]
    refused = ask(client)
    body = assert_error(refused, 429, "rate_limited")
    assert set(body) == {"error", "code"}
    assert left(refused) == (3, 0)
    assert 3500 < int(refused.headers["Retry-After"]) <= 3600


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
    known = ask(client).headers["ETag"]
    answer = ask(client, If_None_Match=known)
    assert answer.status_code == 304
    assert left(answer) == (3, 1)


def test_an_answer_from_memory_is_counted(app_with: Make) -> None:
    client = app_with()
    path = "/api/public/jackpot-counter"
    assert [ask(client, path).status_code for _ in range(4)] == [200, 200, 200, 429]


def test_a_stream_says_what_is_left(app_with: Make) -> None:
    operators = some_operators(1)
    round_id = a_played_round(operators, State.DRAWN)
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
    before = int(time.time())
    resets = {int(ask(app_with()).headers["X-RateLimit-Reset"]) for _ in range(3)}
    assert len(resets) == 1, "all answers of a window name the same end"
    assert before + 3600 <= resets.pop() <= time.time() + 3600
    seconds = int(ask(app_with(RATE_LIMIT_RESET="seconds")).headers["X-RateLimit-Reset"])
    assert 3500 < seconds <= 3600


def test_a_window_ends_and_the_whole_budget_is_back(app_with: Make) -> None:
    client = app_with(RATE_LIMIT_PUBLIC="1/second")
    assert ask(client).status_code == 200
    assert until(lambda: ask(client).status_code == 200, within=5)


def test_health_is_never_limited_and_takes_nothing(app_with: Make) -> None:
    client = app_with()
    assert {ask(client, "/health").status_code for _ in range(9)} == {200}
    assert {ask(client, "/health/ready").status_code for _ in range(9)} == {200}
    assert left(ask(client)) == (3, 2)


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
        assert time.monotonic() - began < 10
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
