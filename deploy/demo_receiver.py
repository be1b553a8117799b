"""The simulated operators' webhook receiver: a real HTTP server that believes a signature and nothing else.

One rule: the signature is checked over the raw bytes, in constant time, before anything of them is read; a wrong one
is answered 401 and leaves no trace but a count.
"""

from __future__ import annotations

import http.server
import json
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
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
    sent_for: datetime
    """When what it tells of happened, as the coordinator says."""
    received: datetime


class Receiver:
    """Listens on a free port of this machine; each operator has a path of its own, `/<operator id>`.

    An event that comes again (same delivery id) is answered 200 and kept once. `news` is set whenever a new one came.
    """

    def __init__(self) -> None:
        self.news = threading.Event()
        self._keys: dict[str, str] = {}
        self._events: dict[tuple[str, str], Event] = {}
        self._refused = 0
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _handler(self))

    def __enter__(self) -> Receiver:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), name="receiver", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def url_for(self, operator_id: str, api_key: str) -> str:
        """Where to send the operator's events from now on, signed with `api_key`."""
        self._keys[operator_id] = api_key
        return f"http://127.0.0.1:{self._server.server_address[1]}/{operator_id}"

    @property
    def events(self) -> list[Event]:
        """Everything believed so far, in the order it came, each delivery once."""
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
        told = json.loads(body)
        event = Event(
            operator_id=operator_id,
            delivery_id=delivery_id,
            name=told["event"],
            round_id=told["roundId"],
            data=told["data"],
            sent_for=datetime.fromisoformat(told["timestamp"]),
            received=datetime.now(UTC),
        )
        with self._lock:
            self._events.setdefault((operator_id, delivery_id), event)
        self.news.set()
        return 200


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    # The standard 5 would make part of a burst wait a second for the kernel's next try.
    request_queue_size = 128


def _handler(receiver: Receiver) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        timeout = 10  # seconds, for a sender that stops in the middle

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "")
            if not (length.isascii() and length.isdigit() and int(length) <= _LONGEST_BODY):
                return self._answer(400)
            body = self.rfile.read(int(length))
            delivery_id = self.headers.get("X-Service-Delivery", "")
            signature = self.headers.get("X-Service-Signature", "")
            return self._answer(receiver.take(self.path.strip("/"), delivery_id, signature, body))

        def _answer(self, status: int) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            """Silence: the demo itself shows what arrived."""

    return Handler
