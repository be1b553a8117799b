"""The coordinator's application served over HTTP, for what speaks to it from outside."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from werkzeug.serving import make_server


@contextlib.contextmanager
def served() -> Iterator[str]:
    """Its address while the context lasts: on loopback, in a thread of this process, on this test's own database."""
    from app import create_app

    server = make_server("127.0.0.1", 0, create_app(), threaded=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
