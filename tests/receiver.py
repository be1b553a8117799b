"""An operator's webhook receiver: a real HTTP server on loopback that answers as told."""

import contextlib
import http.server
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


@dataclass
class Receiver:
    """Answers as told, status by status, once the gate is open (if it has one), and keeps what it got.

    ``says`` makes the body of an answer of the headers and the body that came.
    """

    url: str = ""
    gate: threading.Event | None = None
    says: Callable[[dict[str, str], bytes], bytes] = lambda headers, body: b"thanks\0"
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    requests: list[tuple[dict[str, str], bytes]] = field(default_factory=list)


@contextlib.contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver on loopback while the context lasts."""
    state = Receiver()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            state.requests.append((dict(self.headers), body))
            if state.gate is not None:
                state.gate.wait(20)
            status, headers = state.answers.pop(0) if state.answers else (200, {})
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(state.says(dict(self.headers), body))

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            pass

    class Server(http.server.ThreadingHTTPServer):
        request_queue_size = 1_024  # Whoever is not queued here tries again in 1, 3, 7, 15 s: by TCP's clock.

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
    yield state
    server.shutdown()
    server.server_close()
