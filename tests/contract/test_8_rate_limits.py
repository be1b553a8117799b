"""Interface section 8: how many requests a client may send, and the headers that tell it.

The coordinator of the other tests is told not to limit anybody. Beside it stands a web process with the limits as they
are when nobody sets any, and with the other of the two published readings of `X-RateLimit-Reset`. Each test comes
from an address of its own.
"""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection
from itertools import count
from typing import Any

import pytest

from deploy import children
from deploy.coordinator import claim_port
from deploy.procfile import TOP, argv, read_procfile
from tests.contract.fields import ERROR
from tests.contract.shapes import assert_fields, each
from tests.contract.world import Party, World
from tests.polling import until

LIMIT, REMAINING, RESET = "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"
EVERY = {
    "200": ("GET", "/api/public/rounds"),
    "200 of health": ("GET", "/health"),
    "401": ("GET", "/api/operator/me"),
    "404": ("GET", "/nowhere"),
    "405": ("DELETE", "/api/public/rounds"),
    "422": ("POST", "/api/public/apply"),
}
EDGE = {"public": 100, "operator": 30, "admin": 10}


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: Any


@dataclass
class Client:
    """Somebody at an address of this machine."""

    port: int
    address: str

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        """The answer to a GET."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30, source_address=(self.address, 0))
        with closing(connection):
            connection.request("GET", path, headers=dict(headers or {}))
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.headers), json.loads(answer.read()))

    def use_up(self, path: str, headers: Mapping[str, str] | None = None) -> list[Answer]:
        """Answers up to the first refusal, which is the last."""
        answers = [self.get(path, headers)]
        while answers[-1].status != 429 and len(answers) < 200:
            answers.append(self.get(path, headers))
        return answers


@pytest.fixture(scope="session")
def limited(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a web process of the same coordinator that limits its clients."""
    port = claim_port("127.0.0.1", 0)
    unset = ("RATE_LIMIT_PUBLIC", "RATE_LIMIT_AUTHENTICATED")
    env = {name: value for name, value in world.environment.items() if name not in unset}
    env |= {"PORT": str(port), "RATE_LIMIT_RESET": "seconds"}
    log = tmp_path_factory.mktemp("limited") / "web.log"
    with children.open_log(log) as output:
        command = argv(read_procfile((TOP / "Procfile").read_text())["web"])
        process = children.spawn(command, env=env, output=output, death_signal=signal.SIGTERM, cwd=TOP)
    try:
        until(lambda: process.poll() is not None or _answers(port), within=60, what="the web process to answer")
        assert process.poll() is None, children.last_lines(log, 12)
        yield port
    finally:
        children.stop(process, signal.SIGTERM, 10)


_addresses = count(2)


@pytest.fixture
def client(limited: int) -> Client:
    """A client that has not asked anything yet."""
    return Client(limited, f"127.0.0.{next(_addresses)}")


@each("answer", EVERY)
def test_8_headers_are_on_every(world: World, answer: str) -> None:
    method, path = EVERY[answer]
    came = world.call(method, path, {} if method == "POST" else None)
    assert str(came.status_code) == answer[:3]
    for header in (LIMIT, REMAINING, RESET):
        assert re.fullmatch(r"\d+", came.headers[header])


def test_8_header__X_RateLimit_Limit(client: Client, alba: Party) -> None:
    assert client.get("/api/public/rounds").headers[LIMIT] == "60"
    assert client.get("/api/operator/me", alba.headers).headers[LIMIT] == "120"


def test_8_header__X_RateLimit_Remaining(client: Client) -> None:
    left = [client.get("/api/public/rounds").headers[REMAINING] for _ in range(3)]
    assert left == ["59", "58", "57"]


def test_8_header__X_RateLimit_Reset_is_a_Unix_time(world: World) -> None:
    before = time.time()
    reset = int(world.get("/api/public/rounds").headers[RESET])
    assert before - 1 <= reset <= time.time() + 61


def test_8_header__X_RateLimit_Reset_is_in_seconds_if_so_set(client: Client) -> None:
    # Whole seconds, rounded up at either end.
    assert 1 <= int(client.get("/api/public/rounds").headers[RESET]) <= 61


def test_8_tier__public_60_a_minute_by_IP_address(client: Client, limited: int) -> None:
    answers = client.use_up("/api/public/rounds")
    assert len(answers) == 61
    assert {answer.status for answer in answers[:-1]} == {200}
    assert Client(limited, "127.0.1.1").get("/api/public/rounds").status == 200


def test_8_tier__authenticated_120_a_minute_by_API_key(
    world: World, client: Client, newcomer: Party, alba: Party
) -> None:
    token = {"Authorization": f"Bearer {world.log_in(newcomer)['accessToken']}"}
    # The key and what was made from it are the same client, whatever address they come from.
    assert client.get("/api/operator/me", token).headers[REMAINING] == "119"
    answers = client.use_up("/api/operator/me", newcomer.headers)
    assert len(answers) == 120
    assert {answer.status for answer in answers[:-1]} == {200}
    assert client.get("/api/operator/me", token).status == 429
    assert client.get("/api/operator/me", alba.headers).status == 200
    assert client.get("/api/public/rounds").status == 200


def test_8_exceeded__is_429_and_error(client: Client) -> None:
    refused = client.use_up("/api/public/stats")[-1]
    assert refused.status == 429
    assert refused.headers["Content-Type"] == "application/json"
    assert_fields(refused.body, ERROR)
    assert refused.headers[REMAINING] == "0"
    assert 1 <= int(refused.headers["Retry-After"]) <= 61


@each("paths", EDGE)
def test_8_edge__limit(paths: str) -> None:
    """nginx, which stands before it, counts by address. That it does is tested with nginx, in tests/edge."""
    written = (TOP / "deploy/nginx.conf").read_text()
    zone = re.search(rf"location /api/{paths}/ \{{\s+limit_req zone=(\w+) ", written)
    assert zone
    assert re.search(rf"limit_req_zone \S+ zone={zone[1]}:\w+ rate={EDGE[paths]}r/m;", written)


def _answers(port: int) -> bool:
    try:
        return Client(port, "127.0.0.1").get("/health").status == 200
    except OSError:
        return False
