"""Clients that come from other addresses than 127.0.0.1: all of 127.0.0.0/8 is this machine."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import socket
from dataclasses import dataclass
from typing import Any

_addresses = (f"127.0.{block}.{place}" for block in itertools.count(1) for place in range(1, 255))


def an_address() -> str:
    """One that nobody in this process had before."""
    return next(_addresses)


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def error(self) -> str:
        """The code of an error that looks like all errors: JSON, a sentence and a code, and nothing else."""
        assert self.headers["Content-Type"] == "application/json", self.body
        body = json.loads(self.body)
        assert set(body) == {"error", "code"}
        assert all(isinstance(value, str) and value for value in body.values())
        return str(body["code"])


@dataclass(frozen=True)
class Client:
    """Somebody at an address."""

    port: int
    address: str

    def ask(self, path: str, method: str = "GET", body: Any = None, **headers: str) -> Answer:
        """One request on a connection of its own."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30, source_address=(self.address, 0))
        with contextlib.closing(connection):
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())

    def raw(self, request: bytes) -> bytes:
        """What no well-behaved client sends."""
        with socket.create_connection(
            ("127.0.0.1", self.port), timeout=30, source_address=(self.address, 0)
        ) as connection:
            connection.sendall(request)
            return b"".join(iter(lambda: connection.recv(65536), b""))
