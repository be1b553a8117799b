"""A receiver that misbehaves as told: a real HTTP(S) server on loopback with a mode for every way to go wrong.

One rule: a mode does one thing wrong and goes on doing it until the caller hangs up or the test is over. Every
connection has a thread of its own, so that nothing that one caller suffers is due to another.
"""

from __future__ import annotations

import contextlib
import gzip
import itertools
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

DRIP_SECONDS: Final = 0.02
OK: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nthanks"


@dataclass
class Hostile:
    """What the receiver saw, and where it is. ``requests`` are heads and bodies, ``names`` what SNI asked for."""

    port: int = 0
    connections: int = 0
    requests: list[tuple[bytes, bytes]] = field(default_factory=list)
    names: list[str | None] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)


class Visit:
    """One connection from a caller, with the means to mistreat it."""

    def __init__(self, sock: socket.socket, state: Hostile) -> None:
        self.sock, self.state = sock, state

    def request(self) -> bool:
        """Read a whole request; False when the caller hung up instead."""
        got = b""
        while b"\r\n\r\n" not in got:
            if not (chunk := self.sock.recv(65_536)):
                return False
            got += chunk
        head, _, body = got.partition(b"\r\n\r\n")
        [length] = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
        while len(body) < int(length.split(b":")[1]):
            body += self.sock.recv(65_536)
        self.state.requests.append((head, body))
        return True

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def drip(self, data: bytes) -> None:
        """Send byte by byte, slowly."""
        for byte in data:
            self.send(bytes([byte]))
            if self.state.over.wait(DRIP_SECONDS):
                return

    def linger(self) -> None:
        """Do nothing until the caller has hung up."""
        with contextlib.suppress(OSError):
            while self.sock.recv(65_536):
                pass

    def reset(self) -> None:
        """End the connection the rude way."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


Mode = Callable[[Visit], None]


def well(visit: Visit) -> None:
    """Answers everything, and keeps the connection."""
    while visit.request():
        visit.send(OK)


def answering(*parts: bytes) -> Mode:
    """Answers with these bytes and keeps the connection open, silently."""

    def mode(visit: Visit) -> None:
        visit.request()
        for part in parts:
            visit.send(part)
        visit.linger()

    return mode


def ending(answer: bytes) -> Mode:
    """Answers with these bytes and hangs up."""

    def mode(visit: Visit) -> None:
        visit.request()
        visit.send(answer)

    return mode


def keeping(answer: bytes) -> Mode:
    """Answers every request with these bytes."""

    def mode(visit: Visit) -> None:
        while visit.request():
            visit.send(answer)

    return mode


def never_answers(visit: Visit) -> None:
    visit.request()
    visit.linger()


def does_not_read(visit: Visit) -> None:
    visit.state.over.wait()


def drips_body(visit: Visit) -> None:
    visit.request()
    visit.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    visit.drip(b"x" * 100_000)


def drips_headers(visit: Visit) -> None:
    visit.request()
    visit.drip(b"HTTP/1.1 200 OK\r\n" + b"X-More: of the same\r\n" * 90 + b"\r\n")


def drips_chunks(visit: Visit) -> None:
    visit.request()
    visit.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    visit.drip(b"1\r\nx\r\n" * 100_000)


def drips_interim_answers(visit: Visit) -> None:
    visit.request()
    visit.drip(b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000)


def endless_headers(visit: Visit) -> None:
    visit.request()
    visit.send(b"HTTP/1.1 200 OK\r\n")
    for number in itertools.count():
        visit.send(b"X-Header-%d: %s\r\n" % (number, b"x" * 500))


def one_endless_header(visit: Visit) -> None:
    visit.request()
    visit.send(b"HTTP/1.1 200 OK\r\nX-Long: ")
    while True:
        visit.send(b"x" * 4_096)


def endless_interim_answers(visit: Visit) -> None:
    visit.request()
    while True:
        visit.send(b"HTTP/1.1 100 Continue\r\n\r\n")


def endless_body(visit: Visit) -> None:
    visit.request()
    visit.send(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        visit.send(b"y" * 65_536)


def endless_tiny_chunks(visit: Visit) -> None:
    visit.request()
    visit.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        visit.send(b"1\r\nz\r\n" * 1_000)


def endless_trailers(visit: Visit) -> None:
    visit.request()
    visit.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n")
    while True:
        visit.send(b"X-Trailer: more\r\n" * 100)


def answers_before_the_body_is_read(visit: Visit) -> None:
    visit.send(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n")
    visit.state.over.wait()


def closes_at_once(visit: Visit) -> None:
    """Hangs up without a word."""


def closes_after_the_request(visit: Visit) -> None:
    visit.request()


def resets(visit: Visit) -> None:
    visit.request()
    visit.reset()


def resets_in_the_body(visit: Visit) -> None:
    visit.request()
    visit.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome of it")
    visit.sock.recv(1)  # the test's caller sends nothing more: this returns when it hangs up


def hangs_up_after_one(visit: Visit) -> None:
    """Says keep-alive, and hangs up once it is asked again."""
    visit.request()
    visit.send(OK)
    visit.request()
    visit.reset()


def hangs_up_between(visit: Visit) -> None:
    """Says keep-alive, and hangs up at once."""
    visit.request()
    visit.send(OK)


def speaks_out_of_turn(visit: Visit) -> None:
    visit.request()
    visit.send(OK + b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    visit.linger()


GZIP_BOMB: Final = gzip.compress(b"\0" * 10_000_000)


@contextlib.contextmanager
def misbehaving(mode: Mode, tls: ssl.SSLContext | None = None, address: str = "127.0.0.1") -> Iterator[Hostile]:
    """A receiver in this mode while the context lasts; with ``tls`` it speaks HTTPS."""
    state = Hostile()
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.create_server((address, 0), family=family, backlog=128)
    state.port = listener.getsockname()[1]
    visits: list[socket.socket] = []
    threads: list[threading.Thread] = []
    if tls is not None:
        tls.sni_callback = lambda _, name, __: state.names.append(name)

    def attend(sock: socket.socket) -> None:
        with contextlib.suppress(OSError), sock:
            if tls is None:
                mode(Visit(sock, state))
            else:
                with tls.wrap_socket(sock, server_side=True) as wrapped:
                    visits.append(wrapped)
                    mode(Visit(wrapped, state))

    def accept() -> None:
        while not state.over.is_set():
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            state.connections += 1
            visits.append(sock)
            threads.append(threading.Thread(target=attend, args=(sock,), daemon=True))
            threads[-1].start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield state
    finally:
        state.over.set()
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        accepting.join(10)
        for sock in visits:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join(10)


@contextlib.contextmanager
def not_accepting() -> Iterator[int]:
    """A port whose queue of connections is full: connecting to it hangs."""
    with contextlib.ExitStack() as fillers, socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        port = listener.getsockname()[1]
        for _ in range(8):
            filler = fillers.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        yield port
