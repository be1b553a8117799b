"""The web server in front of the application: what is hardly HTTP is answered in JSON too, and it goes on serving."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from http.client import HTTPResponse
from pathlib import Path

import pytest

from deploy import children
from deploy.coordinator import claim_port
from deploy.procfile import TOP, argv, read_procfile, search_path
from tests.polling import until

HEALTH = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
APPLY = b"POST /api/public/apply HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
LONG = b"x" * 10_000


@pytest.fixture(scope="module")
def port(shared_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A web process as the Procfile starts it, on this port."""
    number = claim_port("127.0.0.1", 0)
    log: Path = tmp_path_factory.mktemp("web") / "web.log"
    env = os.environ | {"PORT": str(number), "WEB_CONCURRENCY": "1", "PATH": search_path()}
    with children.open_log(log) as output:
        command = argv(read_procfile((TOP / "Procfile").read_text())["web"])
        process = children.spawn(command, env=env, output=output, death_signal=signal.SIGTERM, cwd=TOP)
    try:
        until(lambda: process.poll() is not None or answers(number), within=30, what="the web process to answer")
        assert process.poll() is None, children.last_lines(log)
        yield number
    finally:
        children.stop(process, signal.SIGTERM, 10)
    assert "Traceback" not in log.read_text()


def answers(port: int) -> bool:
    try:
        return send(port, HEALTH).status == 200
    except OSError:
        return False


def send(port: int, sent: bytes) -> HTTPResponse:
    """The answer to these bytes, after which nothing more comes from us."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        answer = HTTPResponse(connection)
        answer.begin()
        answer.content = answer.read()  # type: ignore[attr-defined]
        return answer


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (b"nonsense\r\n\r\n", 400, "bad_request"),
        (b"get /health HTTP/1.1\r\nHost: x\r\n\r\n", 400, "bad_request"),
        (b"GET /health HTTP/9.9\r\nHost: x\r\n\r\n", 400, "bad_request"),
        (b"GET /health HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n", 400, "bad_request"),
        (b"GET /health HTTP/1.1\r\nHost: x\r\n<b>: 1\r\n\r\n", 400, "bad_request"),
        (b"GET /health HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n", 400, "bad_request"),
        (b"GET /api/public/rounds/" + LONG + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414, "uri_too_long"),
        (b"GET /api/public/rounds?limit=" + LONG + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414, "uri_too_long"),
        (b"GET /health HTTP/1.1\r\nHost: x\r\nX: " + LONG + b"\r\n\r\n", 431, "headers_too_large"),
        (b"GET /health HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 200 + b"\r\n", 431, "headers_too_large"),
        (APPLY + b"Content-Length: -1\r\n\r\n", 400, "bad_request"),
        (APPLY + b"Content-Length: \xb2\r\n\r\n", 400, "bad_request"),
        (APPLY + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400, "bad_request"),
        (APPLY + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", 400, "bad_request"),
        (APPLY + b"Transfer-Encoding: nonsense\r\n\r\n{}", 501, "not_implemented"),
        (APPLY + b"Expect: the unexpected\r\nContent-Length: 2\r\n\r\n{}", 417, "expectation_failed"),
        (APPLY + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", 400, "bad_request"),
        (APPLY + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}xx0\r\n\r\n", 400, "bad_request"),
        (APPLY + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{", 400, "bad_request"),
        (APPLY + b"Transfer-Encoding: chunked\r\n\r\n", 400, "bad_request"),
        (APPLY + b"Content-Length: 100\r\n\r\n{}", 400, "bad_request"),
        (APPLY + b"Content-Length: 999999999999\r\n\r\n{}", 413, "too_large"),
        (APPLY + b"Content-Length: 2\r\n\r\n{}", 422, "invalid"),
        (APPLY + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 422, "invalid"),
    ],
    ids=lambda value: repr(value[:60]) if isinstance(value, bytes) else "",
)
def test_what_is_hardly_http_is_refused_in_json(port: int, sent: bytes, status: int, code: str) -> None:
    answer = send(port, sent)
    content: bytes = answer.content  # type: ignore[attr-defined]
    assert answer.status == status, content
    assert answer.headers["Content-Type"] == "application/json"
    body = json.loads(content)
    assert body["code"] == code
    assert body["error"]
    assert "x" * 100 not in content.decode()
    assert send(port, HEALTH).status == 200
