"""Interface section 8: how many requests are taken, and the headers that say it. With the published figures."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator

import pytest

from deploy.coordinator import Coordinator, coordinator
from deploy.data_folder import throw_away
from deploy.sandbox import admin_key, operator
from tests.addresses import Answer, Client, an_address

PUBLISHED = {"RATE_LIMIT_PUBLIC": "60/minute", "RATE_LIMIT_AUTHENTICATED": "120/minute"}
SIZE = {"WEB_CONCURRENCY": "2", "WORKER_PROCESSES": "1", "WORKER_THREADS": "2"}
PUBLIC, OWN = "/api/public/odds", "/api/operator/me"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Coordinator]:
    """Two web processes: a limit is one for both."""
    environ = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    logs = tmp_path_factory.mktemp("limits")
    with throw_away() as folder, coordinator(folder, log_dir=logs, environ=environ | PUBLISHED | SIZE) as started:
        yield started


@pytest.fixture(scope="module")
def admin(running: Coordinator) -> str:
    return admin_key(running, "limits")


@pytest.fixture
def key(running: Coordinator, admin: str) -> str:
    return operator(running.base_url, admin, "Limited")["apiKey"]


def somebody(running: Coordinator) -> Client:
    return Client(int(running.env["PORT"]), an_address())


def asked_until_refused(client: Client, path: str, **headers: str) -> tuple[list[Answer], Answer]:
    """The answers that were given, and the refusal after them."""
    given: list[Answer] = []
    while (answer := client.ask(path, **headers)).status == 200:
        given.append(answer)
        assert len(given) <= 200
    return given, answer


def assert_refused(answer: Answer, limit: int) -> None:
    assert answer.status == 429
    assert answer.error() == "rate_limited"
    assert (answer.headers["X-RateLimit-Limit"], answer.headers["X-RateLimit-Remaining"]) == (str(limit), "0")
    assert 1 <= int(answer.headers["Retry-After"]) <= 60


def test_8_tier__public_is_60_requests_a_minute_by_address(running: Coordinator) -> None:
    client = somebody(running)
    given, refused = asked_until_refused(client, PUBLIC)
    assert [int(answer.headers["X-RateLimit-Remaining"]) for answer in given] == list(range(59, -1, -1))
    assert {answer.headers["X-RateLimit-Limit"] for answer in given} == {"60"}
    assert_refused(refused, 60)
    assert somebody(running).ask(PUBLIC).status == 200


def test_8_tier__authenticated_is_120_requests_a_minute_by_key(running: Coordinator, key: str) -> None:
    given, refused = asked_until_refused(somebody(running), OWN, X_Service_Key=key)
    assert [int(answer.headers["X-RateLimit-Remaining"]) for answer in given] == list(range(119, -1, -1))
    assert {answer.headers["X-RateLimit-Limit"] for answer in given} == {"120"}
    assert_refused(refused, 120)
    assert_refused(somebody(running).ask(OWN, X_Service_Key=key), 120)


def test_8_tier__authenticated_is_one_limit_for_a_key_and_its_tokens(running: Coordinator, key: str) -> None:
    client = somebody(running)
    login = client.ask("/api/auth/operator/login", "POST", json.dumps({"apiKey": key}), Content_Type="application/json")
    token = json.loads(login.body)["accessToken"]
    client.ask(OWN, X_Service_Key=key)
    assert client.ask(OWN, Authorization=f"Bearer {token}").headers["X-RateLimit-Remaining"] == "118"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", PUBLIC, 200),
        ("GET", "/health", 200),
        ("GET", "/api/public/rounds/999", 404),
        ("GET", "/nowhere", 404),
        ("DELETE", PUBLIC, 405),
        ("OPTIONS", PUBLIC, 200),
        ("GET", "/api/public/rounds?limit=0", 422),
        ("GET", OWN, 401),
        ("GET", "/api/admin/applications", 401),
        ("POST", "/api/auth/refresh", 415),
    ],
)
def test_8_headers__are_on_every_response(running: Coordinator, method: str, path: str, status: int) -> None:
    before = int(time.time())
    answer = somebody(running).ask(path, method)
    assert answer.status == status
    assert answer.headers["X-RateLimit-Limit"] == "60"
    assert answer.headers["X-RateLimit-Remaining"] == ("60" if path == "/health" else "59")
    assert before <= int(answer.headers["X-RateLimit-Reset"]) <= time.time() + 60
    assert "Retry-After" not in answer.headers
