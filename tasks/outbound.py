"""One HTTP POST to a receiver, and everything that came of it.

The one rule kept here: one deadline stands over DNS, connecting, TLS, sending and the whole answer, and whatever the
receiver does, a call ends there with a value that says what happened.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import h11

from protocol.retry import Outcome
from tasks.addresses import Destination, RefusedAddress, ResolverDown, UnknownHost
from tasks.connections import Connection, Idle, endpoint_of
from tasks.dialling import dial, ours
from tasks.exchange import HEAD_BYTES, Answer, HungUp, exchange, retry_after
from tasks.stopwatch import Phases, Stopwatch
from tasks.wires import Failed, reason, trust

__all__ = ["Call", "Caller", "Phases", "Resolve", "trust"]

Resolve = Callable[[Destination], Awaitable[list[str]]]
"""The checked addresses of a destination. Raises RefusedAddress, UnknownHost or ResolverDown."""

_DEFAULT_PORTS = {"https": 443, "http": 80}
_CUT = {
    "dns": "the name was not resolved in time",
    "connect": "no answer to connecting in time",
    "tls": "the TLS handshake did not end in time",
    "send": "the receiver did not take the request in time",
    "wait": "no answer in time",
    "receive": "the answer did not end in time",
}

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Call:
    """One call and what came of it.

    ``ours``: it failed by our own fault, and is to burn no attempt. ``seconds`` is the time of all of it, ``peer`` the
    address that we talked to or tried last. ``body`` holds at most KEPT_BYTES of what was answered, None if nothing
    was; ``detail`` is one short line on what failed, None if nothing did.
    """

    outcome: Outcome
    ours: bool
    phases: Phases
    seconds: float
    peer: str | None
    reused: bool
    body: str | None
    detail: str | None

    @classmethod
    def not_made(cls, error_class: str, detail: str | None = None) -> Call:
        """The call that was not even begun, and why."""
        return cls(Outcome(error_class=error_class), False, Phases(), 0.0, None, False, None, detail)


class Caller:
    """Calls receivers, and keeps connections for the next call. Belongs to one event loop."""

    def __init__(self, resolve: Resolve, trust: ssl.SSLContext) -> None:
        self._resolve = resolve
        self._trust = trust
        self._idle = Idle()

    async def post(self, destination: Destination, headers: Mapping[str, str], body: bytes, seconds: float) -> Call:
        """POST ``body``; ends within ``seconds``. A failure is a Call too: only CancelledError is raised."""
        attempt = _Attempt(Stopwatch(), Answer(), asyncio.get_running_loop().time() + seconds)
        try:
            async with asyncio.timeout_at(attempt.deadline) as limit:
                await self._post(attempt, destination, headers, body)
        except Failed as failed:
            return attempt.failed(failed)
        except ResolverDown:
            return attempt.failed(Failed("dns", "our resolver does not answer", ours=True))
        except UnknownHost as error:
            return attempt.failed(Failed("dns", str(error)))
        except RefusedAddress as error:
            return attempt.failed(Failed("refused_address", str(error)))
        except ssl.SSLError as error:
            return attempt.failed(Failed("tls", reason(error)))
        except OSError as error:
            if limit.expired():
                return attempt.cut()
            return attempt.failed(Failed(attempt.broken, reason(error), ours=ours(error, attempt.peer)))
        except Exception as error:  # a mistake of ours must cost this call only
            log.exception("call went wrong", extra={"host": destination.host})
            return attempt.failed(Failed("unknown", f"unexpected {type(error).__name__}"))
        return attempt.answered()

    async def close(self) -> None:
        """Hang up the idle connections; calls under way end as they will, and leave none behind."""
        self._idle.close()

    async def _post(self, attempt: _Attempt, destination: Destination, headers: Mapping[str, str], body: bytes) -> None:
        request = _request(destination, headers, body)
        waiting = self._idle.take(endpoint_of(destination))
        if waiting is not None:
            attempt.peer, attempt.reused = waiting.wire.peer, True
            try:
                await self._exchange(attempt, waiting, request, body)
            except HungUp:
                attempt.reused = False  # it had hung up before we called: that is no answer to this call
            else:
                return
        await self._exchange(attempt, await self._open(attempt, destination), request, body)

    async def _open(self, attempt: _Attempt, destination: Destination) -> Connection:
        clock = attempt.clock
        clock.start("dns")
        addresses = await self._resolve(destination)
        clock.start("connect")
        wire = await dial(addresses, destination.port, attempt.deadline, attempt.trying)
        try:
            if destination.scheme == "https":
                clock.start("tls")
                await wire.secure(self._trust, destination.host)
        except BaseException:
            wire.abort()
            raise
        http = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_BYTES)
        return Connection(endpoint_of(destination), wire, http, asyncio.get_running_loop().time())

    async def _exchange(self, attempt: _Attempt, connection: Connection, request: h11.Request, body: bytes) -> None:
        again = False
        try:
            again = await exchange(connection.wire, connection.http, request, body, attempt.answer, attempt.clock)
        finally:
            if again:
                self._idle.keep(connection)
            else:
                connection.wire.abort()


@dataclass
class _Attempt:
    """What is known so far of a call under way."""

    clock: Stopwatch
    answer: Answer
    deadline: float
    peer: str | None = None
    reused: bool = False

    @property
    def broken(self) -> str:
        """The error class of a failure of the network now."""
        return {"dns": "dns", "connect": "connect", "tls": "tls"}.get(self.clock.phase or "", "bad_response")

    def trying(self, address: str) -> None:
        self.peer = address

    def answered(self) -> Call:
        after = self.answer.retry_after
        wait = None if after is None else retry_after(after, datetime.now(UTC))
        return self._call(Outcome(status=self.answer.status, retry_after=wait), ours=False, detail=None)

    def failed(self, failed: Failed) -> Call:
        return self._call(Outcome(error_class=failed.error_class), ours=failed.ours, detail=failed.detail)

    def cut(self) -> Call:
        detail = _CUT[self.clock.phase or "dns"]
        if self.answer.status is not None:
            detail = f"status {self.answer.status}, but {detail}"
        return self._call(Outcome(error_class="timeout"), ours=False, detail=detail)

    def _call(self, outcome: Outcome, *, ours: bool, detail: str | None) -> Call:
        phases, seconds = self.clock.stop()
        return Call(outcome, ours, phases, seconds, self.peer, self.reused, self.answer.text, detail)


def _request(destination: Destination, headers: Mapping[str, str], body: bytes) -> h11.Request:
    host = f"[{destination.host}]" if ":" in destination.host else destination.host
    if destination.port != _DEFAULT_PORTS[destination.scheme]:
        host = f"{host}:{destination.port}"
    ours = [("Host", host), ("Content-Length", str(len(body))), ("Accept-Encoding", "identity")]
    return h11.Request(method="POST", target=destination.target, headers=[*ours, *headers.items()])
