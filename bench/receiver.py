"""A thousand webhook receivers in one process that costs the senders beside it next to nothing.

The one rule kept here: a call is noted, by the clock that the commit was timed with, at the moment when its last byte
has been read, before it is answered. Each endpoint has a port of its own, as operators have hosts of their own: a
sender that keeps connections open finds one per endpoint and not one for all.

    python -m bench.receiver COUNT     prints the ports; answers a line of JSON to every line it reads, ends with them
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import select
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from bench.dialogue import Dialogue, dialogue

_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
_LAST_ANSWER = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"
_POLL_SECONDS = 0.02


class Arrival(NamedTuple):
    """A call that came: to which endpoint (from 0), when (Unix time), and its webhook-id if it had one."""

    endpoint: int
    at: float
    delivery: str


class Receiver:
    """The process as its starter sees it. ``urls`` has the address of each endpoint."""

    def __init__(self, process: Dialogue) -> None:
        self._process = process
        self.urls = [f"http://127.0.0.1:{port}/{endpoint}" for endpoint, port in enumerate(process.hear())]

    def hang(self, every: int, seconds: float) -> None:
        """From now on every so-manyth endpoint (0: none) answers nothing and holds each call for so long."""
        self._process.ask("hang", every, seconds)

    def forget(self) -> None:
        """Forget what came so far."""
        self._process.ask("forget")

    def arrivals(self) -> list[Arrival]:
        """What came since, in the order in which it came."""
        return [Arrival(*each) for each in self._process.ask("arrivals")]

    def wait_for(self, count: int, seconds: float) -> bool:
        """Wait until so many calls have come that were answered; False if they have not after so long."""
        deadline = time.monotonic() + seconds
        while self._process.ask("answered") < count:
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True


@contextlib.contextmanager
def receiving(count: int, log: Path) -> Iterator[Receiver]:
    """A receiver with so many endpoints while the context lasts."""
    with dialogue([sys.executable, "-m", "bench.receiver", str(count)], log) as process:
        yield Receiver(process)


class _Call:
    """A connection to one endpoint, and what was read of the request on it."""

    __slots__ = ("endpoint", "received", "socket")

    def __init__(self, connection: socket.socket, endpoint: int) -> None:
        self.socket, self.endpoint, self.received = connection, endpoint, b""


class _Endpoints:
    """All endpoints and all calls to them, in one loop over epoll."""

    def __init__(self, count: int) -> None:
        self._listeners = [_listener() for _ in range(count)]
        self._endpoint_of = {listener.fileno(): place for place, listener in enumerate(self._listeners)}
        self._calls: dict[int, _Call] = {}
        self._held: collections.deque[tuple[float, _Call]] = collections.deque()
        self._arrivals: list[Arrival] = []
        self._answered = 0
        self._hang_every, self._hang_seconds = 0, 0.0
        self._epoll = select.epoll()
        for number in self._endpoint_of:
            self._epoll.register(number, select.EPOLLIN)

    def run(self, commands: IO[bytes], answers: IO[bytes]) -> None:
        """Serve until the commands end."""
        _say(answers, [listener.getsockname()[1] for listener in self._listeners])
        self._epoll.register(commands.fileno(), select.EPOLLIN)
        while True:
            for number, _ in self._epoll.poll(1.0):
                if number in self._endpoint_of:
                    self._accept(number)
                elif number in self._calls:
                    self._read(self._calls[number])
                elif number == commands.fileno():
                    # One line is answered before the next is written: nothing is ever left in the buffer.
                    line = commands.readline()
                    if not line:
                        return
                    _say(answers, self._obey(*json.loads(line)))
            self._let_go()

    def _obey(self, command: str, *arguments: Any) -> object:
        match command:
            case "hang":
                self._hang_every, self._hang_seconds = arguments
            case "forget":
                self._arrivals.clear()
                self._answered = 0
            case "answered":
                return self._answered
            case "arrivals":
                return self._arrivals
        return None

    def _accept(self, number: int) -> None:
        endpoint = self._endpoint_of[number]
        connection, _ = self._listeners[endpoint].accept()
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        call = self._calls[connection.fileno()] = _Call(connection, endpoint)
        self._epoll.register(connection.fileno(), select.EPOLLIN)
        self._read(call)  # Most often the request is there already.

    def _read(self, call: _Call) -> None:
        try:
            piece = call.socket.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        if not piece:
            self._close(call)
            return
        call.received += piece
        head, found, body = call.received.partition(b"\r\n\r\n")
        if not found:
            return
        head = head.lower() + b"\r\n"
        if len(body) < int(_header(head, b"content-length") or 0):
            return
        now = time.time()
        call.received = b""
        self._arrivals.append(Arrival(call.endpoint, now, _header(head, b"webhook-id").decode()))
        if self._hang_every and call.endpoint % self._hang_every == 0:
            self._held.append((time.monotonic() + self._hang_seconds, call))
            return
        self._answered += 1
        with contextlib.suppress(OSError):  # Whoever does not wait for the answer was heard all the same.
            if _header(head, b"connection") == b"close":
                call.socket.send(_LAST_ANSWER)
                self._close(call)
            else:
                call.socket.send(_ANSWER)

    def _let_go(self) -> None:
        while self._held and self._held[0][0] < time.monotonic():
            self._close(self._held.popleft()[1])

    def _close(self, call: _Call) -> None:
        # Closing takes it out of the epoll as well. A call that was let go and hung up upon is closed twice.
        if self._calls.pop(call.socket.fileno(), None):
            call.socket.close()


def _listener() -> socket.socket:
    listener = socket.create_server(("127.0.0.1", 0), backlog=16)
    listener.setblocking(False)
    return listener


def _header(head: bytes, name: bytes) -> bytes:
    """The value of a header in a head in lower case; empty when it is not there."""
    _, found, rest = head.partition(b"\r\n" + name + b":")
    return rest[: rest.index(b"\r\n")].strip() if found else b""


def _say(answers: IO[bytes], what: object) -> None:
    answers.write(json.dumps(what).encode() + b"\n")
    answers.flush()


if __name__ == "__main__":
    _Endpoints(int(sys.argv[1])).run(os.fdopen(0, "rb"), os.fdopen(1, "wb"))
