"""A small HTTP client that keeps many connections busy at the cost of little time of its own."""

from __future__ import annotations

import contextlib
import itertools
import selectors
import socket
import time
from collections.abc import Iterator, Sequence

_CONNECTIONS = 8
"""As many as a web process has threads: none waits for one, and none is idle."""


class _Connection:
    """One request in flight at a time, over and over."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = b""

    def whole_answer(self) -> bool:
        """Read what is there; True once it is all of the answer.

        :raises RuntimeError: the answer is not 200 or 304.
        """
        piece = self.socket.recv(1 << 16)
        if not piece:
            raise RuntimeError("the server hung up")
        self.received += piece
        head, found, body = self.received.partition(b"\r\n\r\n")
        if not found:
            return False
        lines = head.lower().split(b"\r\n")
        if lines[0].split()[1] not in (b"200", b"304"):
            raise RuntimeError(self.received.decode(errors="replace"))
        length = next((int(line[15:]) for line in lines if line.startswith(b"content-length:")), 0)
        if len(body) < length:
            return False
        self.received = b""
        return True


def requests_per_second(port: int, paths: Sequence[str], seconds: float, headers: str = "") -> float:
    """Ask for the paths in turn over a fixed number of connections; answers completed per second."""
    requests = itertools.cycle([f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode() for path in paths])
    with _connections(port) as selector:
        for key in list(selector.get_map().values()):
            key.data.socket.sendall(next(requests))
        done, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            for key, _ in selector.select(timeout=1):
                if key.data.whole_answer():
                    done += 1
                    key.data.socket.sendall(next(requests))
        return done / (time.perf_counter() - start)


@contextlib.contextmanager
def _connections(port: int) -> Iterator[selectors.BaseSelector]:
    with selectors.DefaultSelector() as selector, contextlib.ExitStack() as stack:
        for _ in range(_CONNECTIONS):
            connection = _Connection(port)
            stack.callback(connection.socket.close)
            selector.register(connection.socket, selectors.EVENT_READ, connection)
        yield selector
