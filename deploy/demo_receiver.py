"""The simulated operators' webhook receiver: a real HTTP server that believes a signature and nothing else.

One rule: the signature is checked over the raw bytes, in constant time, before anything of them is read; a wrong one is
answered 401 and leaves no trace.
"""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from protocol.webhook import verify

_LONGEST_BODY = 1_000_000


@dataclass(frozen=True)
class Event:
    """One webhook that was believed. `delivery_id` is the same on every attempt at it."""

    operator_id: str
    delivery_id: str
    name: str
    round_id: int | None
    data: dict[str, Any]


class Receiver:
    """Listens on a free port of this machine; each operator has a path of its own, `/<operator id>`.

    An event that comes again (same delivery id) is answered 200 and kept once. `on_event` is called for each new
    one, from the server's threads.
    """

    def __init__(self, on_event: Callable[[Event], None]) -> None:
        self._keys: dict[str, str] = {}
        self._events: dict[tuple[str, str], Event] = {}
        self._refused = 0
        self._lock = threading.Lock()
        self._on_event = on_event
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True

    def __enter__(self) -> Receiver:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), name="receiver", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def url_of(self, operator_id: str, api_key: str) -> str:
        """Where to send the operator's events from now on, signed with `api_key`."""
        self._keys[operator_id] = api_key
        return f"http://127.0.0.1:{self._server.server_address[1]}/{operator_id}"

    @property
    def events(self) -> list[Event]:
        """Everything believed so far, each delivery once."""
        with self._lock:
            return list(self._events.values())

    @property
    def refused(self) -> int:
        """How many deliveries had a wrong signature."""
        with self._lock:
            return self._refused

    def take(self, operator_id: str, delivery_id: str, signature: str, body: bytes) -> int:
        """Decide about one delivery; returns the HTTP status to answer."""
        key = self._keys.get(operator_id)
        if key is None:
            return 404
        if not verify(body, key, signature):
            with self._lock:
                self._refused += 1
            return 401
        message = json.loads(body)
        event = Event(operator_id, delivery_id, message["event"], message["roundId"], message["data"])
        with self._lock:
            known = (operator_id, delivery_id) in self._events
            self._events.setdefault((operator_id, delivery_id), event)
        if not known:
            self._on_event(event)
        return 200

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(min(length, _LONGEST_BODY))
                delivery_id = self.headers.get("X-Service-Delivery", "")
                signature = self.headers.get("X-Service-Signature", "")
                self.send_response(receiver.take(self.path.strip("/"), delivery_id, signature, body))
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
                """Silence: the demo shows what arrived itself."""

        return Handler
