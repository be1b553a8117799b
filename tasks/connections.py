"""Connections that wait for their next use.

The one rule kept here: a connection is used again only while it is young, still open and silent. DNS is followed within
MOST_SECONDS, and no receiver keeps more of our sockets than it was given.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import h11

from tasks.addresses import Destination
from tasks.wires import Wire

IDLE_SECONDS = 15.0
MOST_SECONDS = 60.0
IDLE_PER_ENDPOINT = 2
IDLE_IN_ALL = 256

Endpoint = tuple[str, str, int]


@dataclass(eq=False)
class Connection:
    """A wire and the state of the HTTP on it. ``opened`` and ``idle_since`` are on the loop's clock."""

    endpoint: Endpoint
    wire: Wire
    http: h11.Connection
    opened: float
    idle_since: float = 0.0


def endpoint_of(destination: Destination) -> Endpoint:
    """What a connection can be used again for: the same scheme, name and port."""
    return destination.scheme, destination.host, destination.port


class Idle:
    """The idle connections of one event loop."""

    def __init__(self) -> None:
        self._idle: dict[Connection, None] = {}  # the longest idle first
        self._per_endpoint: dict[Endpoint, list[Connection]] = {}
        self._sweep: asyncio.TimerHandle | None = None
        self._closed = False

    def take(self, endpoint: Endpoint) -> Connection | None:
        """A connection to use again, the one used last; None if there is none that can be."""
        now = asyncio.get_running_loop().time()
        while waiting := self._per_endpoint.get(endpoint):
            connection = waiting[-1]
            self._forget(connection)
            if connection.wire.wake() and not _stale(connection, now):
                return connection
            connection.wire.abort()
        return None

    def keep(self, connection: Connection) -> None:
        """Let a connection wait for its next use, or hang it up if it is in no state for that."""
        loop = asyncio.get_running_loop()
        connection.idle_since = loop.time()
        if self._closed or _stale(connection, connection.idle_since) or not connection.wire.rest():
            connection.wire.abort()
            return
        waiting = self._per_endpoint.setdefault(connection.endpoint, [])
        waiting.append(connection)
        self._idle[connection] = None
        if len(waiting) > IDLE_PER_ENDPOINT:
            self._drop(waiting[0])
        elif len(self._idle) > IDLE_IN_ALL:
            self._drop(next(iter(self._idle)))
        if self._sweep is None:
            self._sweep = loop.call_later(IDLE_SECONDS, self._sweep_now)

    def close(self) -> None:
        """Hang up all of them, and keep no more."""
        self._closed = True
        for connection in list(self._idle):
            self._drop(connection)
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None

    def _sweep_now(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection in [one for one in self._idle if one.wire.ended or _stale(one, now)]:
            self._drop(connection)
        oldest = next(iter(self._idle), None)
        # Whoever has been idle longest is due first; not more than once a second, though.
        wait = None if oldest is None else max(1.0, oldest.idle_since + IDLE_SECONDS - now)
        self._sweep = None if wait is None else loop.call_later(wait, self._sweep_now)

    def _drop(self, connection: Connection) -> None:
        self._forget(connection)
        connection.wire.abort()

    def _forget(self, connection: Connection) -> None:
        del self._idle[connection]
        waiting = self._per_endpoint[connection.endpoint]
        waiting.remove(connection)
        if not waiting:
            del self._per_endpoint[connection.endpoint]


def _stale(connection: Connection, now: float) -> bool:
    return now - connection.opened > MOST_SECONDS or now - connection.idle_since > IDLE_SECONDS
