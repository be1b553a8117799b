"""The edge, as an installation has it: Debian's nginx with our configuration before the real coordinator.

Every test is a client (or several) at an address of its own, so that no test uses up another's budget.
"""

from __future__ import annotations

import gzip
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import redis

from deploy.coordinator import Coordinator, coordinator
from deploy.data_folder import throw_away
from deploy.sandbox import admin_key, operator
from tests.addresses import Answer, Client, an_address
from tests.edge.nginx import nginx, nginx_binary
from tests.polling import until

pytestmark = pytest.mark.edge

TABLE = [("/api/public/jackpot", 100, 1), ("/api/operator/me", 30, 2), ("/api/admin/applications", 10, 6)]
"""A path of each kind, its limit a minute, and the seconds in which one more request becomes possible."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Coordinator]:
    nginx_binary()  # Said before anything is started.
    clean = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    logs = tmp_path_factory.mktemp("logs")
    with throw_away() as folder, coordinator(folder, log_dir=logs, environ=clean | {"TRUSTED_HOPS": "1"}) as started:
        yield started


@pytest.fixture(scope="module")
def port(running: Coordinator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with nginx(tmp_path_factory.mktemp("edge"), running.base_url.removeprefix("http://")) as listening:
        yield listening


@pytest.fixture
def somebody(port: int) -> Callable[[], Client]:
    """Clients, each at an address that nobody had before."""
    return lambda: Client(port, an_address())


def use_up(client: Client, path: str, limit: int) -> Answer:
    """Ask until refused, which is after the limit and what the time that it took has added; the refusal."""
    began = time.monotonic()
    for asked in range(3 * limit):
        answer = client.ask(path)
        if answer.status == 429:
            added = (time.monotonic() - began) * limit / 60
            assert limit <= asked <= limit + added + 1
            return answer
    raise AssertionError(f"{path} was never refused")


@pytest.mark.parametrize(("path", "limit", "seconds"), TABLE)
def test_each_path_has_its_limit_and_others_are_not_touched(
    somebody: Callable[[], Client], path: str, limit: int, seconds: int
) -> None:
    client, other = somebody(), somebody()
    refused = use_up(client, path, limit)
    assert refused.error() == "rate_limited"
    assert refused.headers["Retry-After"] == str(seconds)
    assert refused.headers["X-RateLimit-Limit"] == str(limit)
    assert refused.headers["X-RateLimit-Remaining"] == "0"
    readable = path.startswith("/api/public/")
    assert ("Access-Control-Allow-Origin" in refused.headers) == readable
    assert ("Retry-After" in refused.headers.get("Access-Control-Expose-Headers", "")) == readable
    assert {client.ask(one).status for one, _, _ in TABLE if one != path} <= {200, 401}
    assert client.ask("/health").status == 200
    assert client.ask("/api/auth/refresh", "POST").status == 415
    assert other.ask(path).status in (200, 401)


def test_whoever_waits_as_told_is_served(somebody: Callable[[], Client]) -> None:
    client = somebody()
    path, limit, seconds = TABLE[1]
    use_up(client, path, limit)
    until(lambda: client.ask(path).status == 401, within=seconds + 3)


def test_spelling_a_path_otherwise_gains_nothing(somebody: Callable[[], Client]) -> None:
    client = somebody()
    use_up(client, "/api/admin/applications", 10)
    for path in "/api/%61dmin/applications", "//api/admin/applications", "/x/../api/admin/rounds?a=b", "/api/admin/":
        assert client.ask(path).status == 429, path


def test_a_spoofed_address_changes_nobodys_budget(somebody: Callable[[], Client], running: Coordinator) -> None:
    client, victim = somebody(), somebody()
    spoofed = {
        "X_Forwarded_For": victim.address,
        "X_Real_IP": victim.address,
        "Forwarded": f"for={victim.address}",
    }
    answers = [client.ask("/api/admin/applications", **spoofed).status for _ in range(12)]
    assert answers == [401] * 10 + [429] * 2
    assert victim.ask("/health").status == 200
    with redis.Redis.from_url(running.engines.redis_url, decode_responses=True) as engine:
        counted = [name.split("/")[1] for name in engine.scan_iter("LIMITS:*")]
    assert f"ip:{client.address}" in counted
    assert f"ip:{victim.address}" not in counted


def test_an_ipv6_customer_is_one_client(running: Coordinator, tmp_path: Path) -> None:
    behind = "set_real_ip_from 127.0.0.1;\nreal_ip_header X-Forwarded-For;"
    with nginx(tmp_path / "edge", running.base_url.removeprefix("http://"), behind) as port:
        client = Client(port, "127.0.0.1")
        path = "/api/admin/applications"
        homes = [client.ask(path, X_Forwarded_For=f"2001:db8:1:2:{n:x}::{n:x}").status for n in range(1, 13)]
        assert homes == [401] * 10 + [429] * 2
        assert client.ask(path, X_Forwarded_For="2001:db8:1:3::1").status == 401
        # A byte that ends a line in other places: 0x0a in either half.
        assert client.ask(path, X_Forwarded_For="a0a:a0a:a0a:a0a:a0a:a0a:a0a:a0a").status == 401
        neighbours = [client.ask(path, X_Forwarded_For=f"a0a:a0a:a0a:a0a::{n:x}").status for n in range(1, 11)]
        assert neighbours == [401] * 9 + [429]


def test_a_body_may_hold_16_mebibytes(somebody: Callable[[], Client]) -> None:
    client, limit = somebody(), 16 * 1024 * 1024
    refused = client.ask("/api/auth/refresh", "POST", b" " * (limit + 1), Content_Type="application/json")
    assert (refused.status, refused.error()) == (413, "too_large")
    assert "X-RateLimit-Limit" not in refused.headers, "nginx said it"


@pytest.mark.parametrize(("path", "status"), [("/api/auth/refresh", 413), ("/api/operator/tickets", 401)])
def test_what_the_coordinator_says_to_a_large_body_arrives(
    somebody: Callable[[], Client], running: Coordinator, path: str, status: int
) -> None:
    through, past = somebody(), Client(int(running.env["PORT"]), an_address())
    for client in [through, past] * 10:
        answer = client.ask(path, "POST", b" " * (16 * 1024 * 1024), Content_Type="application/json")
        assert answer.status == status
        assert "X-RateLimit-Limit" in answer.headers, "the coordinator said it"


@pytest.mark.parametrize("path", ["/metrics", "/metrics/", "/metrics/x", "/%6detrics", "//metrics", "/metrics?a=b"])
def test_metrics_are_hidden(somebody: Callable[[], Client], path: str) -> None:
    answer = somebody().ask(path)
    assert (answer.status, answer.error()) == (404, "not_found")


@pytest.mark.parametrize(
    ("request_text", "status", "code"),
    [
        (b"nonsense\r\n\r\n", 400, "bad_request"),
        (b"GET /health HTTP/1.1\r\n\r\n", 400, "bad_request"),
        (b"GET /health HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 40_000 + b"\r\n\r\n", 400, "bad_request"),
        (b"GET /" + b"a" * 40_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414, "path_too_long"),
        (b"TRACE / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 405, "method_not_allowed"),
    ],
)
def test_what_nginx_itself_refuses_is_json(
    somebody: Callable[[], Client], request_text: bytes, status: int, code: str
) -> None:
    head, _, body = somebody().raw(request_text).partition(b"\r\n\r\n")
    assert head.split(b" ")[1] == str(status).encode(), head
    assert b"\r\nContent-Type: application/json\r\n" in head + b"\r\n"
    assert json.loads(body)["code"] == code
    assert set(json.loads(body)) == {"error", "code"}


def test_a_coordinator_that_is_away_is_a_502(tmp_path: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # Taken, and nobody listens.
        with nginx(tmp_path / "edge", f"127.0.0.1:{nobody.getsockname()[1]}") as port:
            answer = Client(port, "127.0.0.1").ask("/api/public/jackpot")
    assert (answer.status, answer.error()) == (502, "unavailable")


def test_a_coordinator_that_takes_no_connections_is_a_504(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as deaf:
        address = deaf.getsockname()
        with socket.create_connection(address), nginx(tmp_path / "edge", f"127.0.0.1:{address[1]}") as port:
            answer = Client(port, "127.0.0.1").ask("/api/public/jackpot")
    assert (answer.status, answer.error()) == (504, "timeout")


def test_compressed_bodies_go_through_as_they_are(somebody: Callable[[], Client], running: Coordinator) -> None:
    client = somebody()
    admin = {"X_Service_Admin_Key": admin_key(running, "edge"), "Content_Type": "application/json"}
    key = operator(running.base_url, admin["X_Service_Admin_Key"], "Edge")["apiKey"]
    now = datetime.now(UTC)
    stages = ("sealAt", "sealingDeadline", "escrowDeadline", "scheduledDrawTime", "settleAt", "closeAt")
    moments = {stage: (now + timedelta(hours=place + 1)).isoformat() for place, stage in enumerate(stages)}
    opened = client.ask("/api/admin/rounds", "POST", json.dumps(moments), **admin)
    assert opened.status == 201
    numbers = {"jackpotNumber": 7, "bonus1": 1, "bonus2": 2, "bonus3": 3, "bonus4": 4, "bonus5": 5}
    tickets = [{"ticketId": f"t-{n}", **numbers, "isQuickPick": True} for n in range(1000)]
    batch = json.dumps({"roundId": json.loads(opened.body)["id"], "tickets": tickets}).encode()
    headers = {"X_Service_Key": key, "Content_Type": "application/json", "Content_Encoding": "gzip"}
    accepted = client.ask("/api/operator/tickets", "POST", gzip.compress(batch), **headers)
    assert (accepted.status, json.loads(accepted.body)["ticketsAccepted"]) == (200, 1000)
    assert "X-RateLimit-Limit" in accepted.headers
