"""A coordinator that misbehaves on demand: a real HTTP server on loopback, and a clock that only sleeping moves."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from player.coordinator import Coordinator

KEY = "sk_one_verysecret"
EMPTY: dict[str, Any] = {"rounds": [], "count": 0}
INVALID = (401, {"error": "the token is not valid", "code": "invalid_token"})
TORN = "torn"  # the request is taken, and the connection breaks in the middle of the answer
GONE = "gone"  # the request is taken, and nothing is said

Answer = tuple[int, Any] | tuple[int, Any, dict[str, str]] | str


@dataclass
class Clock:
    """Seconds that pass only in `sleep`."""

    now: float = 1_000.0
    slept: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@dataclass
class Stubborn:
    """Answers each request with the next of `answers`, then with an empty list of rounds. Logging in always works,
    refreshing unless `refreshes` says otherwise; access tokens in `dead` are refused. `asked`: all that came.
    """

    url: str = ""
    clock: Clock = field(default_factory=Clock)
    answers: list[Answer] = field(default_factory=list)
    refreshes: list[Answer] = field(default_factory=list)
    logins: list[Answer] = field(default_factory=list)
    asked: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    dead: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)
    issued: int = 0

    def client(self, **changes: Any) -> Coordinator:
        """A client of it, on its clock."""
        given: dict[str, Any] = {"api_key": KEY, "clock": self.clock, "sleep": self.clock.sleep, **changes}
        return Coordinator(self.url, **given)

    def paths(self) -> list[str]:
        """What was asked, without the way to it: `login`, `rounds`."""
        return [path.rpartition("/")[2] for path, _, _ in self.asked]

    def bearers(self) -> list[str]:
        """The access tokens that came, in order, without repetitions in a row."""
        found: list[str] = []
        for _, headers, _ in self.asked:
            token = headers.get("Authorization", "").removeprefix("Bearer ")
            if token and found[-1:] != [token]:
                found.append(token)
        return found

    def answer(self, path: str, bearer: str) -> Answer:
        """The next answer to somebody who asks for this."""
        if path.endswith(("/login", "/refresh")):
            told = self.refreshes if path.endswith("/refresh") else self.logins
            if told:
                return told.pop(0)
            self.issued += 1
            return 200, {"accessToken": f"a{self.issued}", "refreshToken": f"r{self.issued}", "expiresIn": 900}
        if bearer in self.dead:
            return INVALID
        return self.answers.pop(0) if self.answers else (200, EMPTY)


@contextlib.contextmanager
def stubborn_coordinator() -> Iterator[Stubborn]:
    """One on loopback while the context lasts."""
    state = Stubborn()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            with state.lock:
                state.asked.append((self.path, dict(self.headers), body))
                answer = state.answer(self.path, self.headers.get("Authorization", "").removeprefix("Bearer "))
            if isinstance(answer, str):
                self.close_connection = True
                if answer == TORN:
                    self.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"rounds": [')
                return
            status, said, *more = answer
            raw = said if isinstance(said, bytes) else json.dumps(said).encode()
            self.send_response_only(status)
            for name, value in {"Content-Length": str(len(raw)), **(more[0] if more else {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(raw)

        do_GET = do_POST = do_PUT = _serve

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield state
    server.shutdown()
    server.server_close()
