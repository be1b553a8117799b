"""Where the webhooks of all operators of a world arrive: each at a path of its own, which says how it is answered.

One rule: nothing is believed or thrown away here. What a delivery has to look like is for the tests to say.
"""

from __future__ import annotations

import http.server
import json
import threading
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Request:
    """One attempt at a delivery, as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def told(self) -> dict[str, Any]:
        """The body, parsed."""
        read: dict[str, Any] = json.loads(self.body)
        return read


class Receiver:
    """Listens on a free port of this machine. A path that begins with a number is answered with it; one that begins
    with `slow` not before everything is over; any other with 200.
    """

    def __init__(self) -> None:
        self._requests: list[Request] = []
        self._lock = threading.Lock()
        self.over = threading.Event()
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True

    def __enter__(self) -> Receiver:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()

    def url(self, path: str) -> str:
        """The address of a path here."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/{path}"

    def keep(self, request: Request) -> None:
        """Keep one request."""
        with self._lock:
            self._requests.append(request)

    def at(self, path: str) -> list[Request]:
        """Everything that came to a path, in its order."""
        with self._lock:
            return [request for request in self._requests if request.path == f"/{path}"]


def _handler(receiver: Receiver) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def _take(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            receiver.keep(Request(self.command, self.path, dict(self.headers), body))
            does = self.path.split("/")[1]
            if does == "slow":
                receiver.over.wait()
                return
            status = int(does) if does.isdigit() else 200
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", receiver.url("redirected"))
            self.end_headers()

        do_GET = do_POST = do_PUT = _take

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            pass

    return Handler
