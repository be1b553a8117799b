"""An operator's receiver that only counts: how often each delivery reached it."""

from __future__ import annotations

import contextlib
import http.server
import threading
import time
from collections import Counter
from collections.abc import Iterator


@contextlib.contextmanager
def counting(answer_seconds: float = 0.0) -> Iterator[tuple[str, Counter[str]]]:
    """The URL of a receiver that takes so long to answer 200, and the count by delivery id."""
    counted: Counter[str] = Counter()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            counted[self.headers["X-Service-Delivery"]] += 1
            time.sleep(answer_seconds)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            pass

    class Server(http.server.ThreadingHTTPServer):
        request_queue_size = 1_024

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/hook", counted
    server.shutdown()
    server.server_close()
