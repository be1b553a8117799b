"""Calling receivers on loopback, the way the sender does it, from tests that are not asynchronous themselves."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from typing import TypeVar

from tasks.addresses import Destination
from tasks.outbound import Call, Caller, Resolve, trust
from tests.authorities import Authority

NAME = "receiver.example"
HEADERS = {"Content-Type": "application/json", "webhook-id": "1"}
DEADLINE = 0.6
GRACE = 0.5  # a call may end so much after its deadline
PLENTY = 20.0

_T = TypeVar("_T")


async def loopback(_: Destination) -> list[str]:
    """A resolver to which every name is this machine."""
    return ["127.0.0.1"]


def at(port: int, scheme: str = "http", host: str = NAME, target: str = "/hook?a=1") -> Destination:
    """A webhook address on this port."""
    return Destination(scheme, host, port, target)


@contextlib.asynccontextmanager
async def calling(authority: Authority | None = None, resolve: Resolve = loopback) -> AsyncIterator[Caller]:
    """A caller that trusts this authority only, or the public ones."""
    caller = Caller(resolve, trust(authority.ca_file if authority else None))
    try:
        yield caller
    finally:
        await caller.close()


def run(test: Coroutine[object, object, _T]) -> _T:
    """What the coroutine returns, on a loop of its own."""
    return asyncio.run(test)


async def timed(caller: Caller, destination: Destination, body: bytes, seconds: float = DEADLINE) -> tuple[Call, bool]:
    """A call with this deadline, and whether it went on for longer than GRACE after it.

    What tells is a timer on the same loop, which runs late when the whole test does: on a loaded machine, a process
    that does not get the processor is late with everything.
    """
    loop = asyncio.get_running_loop()
    overdue = asyncio.Event()

    def due(passes: int) -> None:
        """Whatever became due while we did not run gets its turn before this counts."""
        if passes:
            loop.call_soon(due, passes - 1)
        else:
            overdue.set()

    began = loop.time()
    grace = loop.call_later(seconds + GRACE, due, 5)
    call = await caller.post(destination, HEADERS, body, seconds)
    grace.cancel()
    assert loop.time() - began >= seconds - 0.001, ("it ended before its deadline", call)
    return call, overdue.is_set()


def one_call(
    destination: Destination, seconds: float, authority: Authority | None = None, resolve: Resolve = loopback
) -> Call:
    """One call by a new caller."""

    async def test() -> Call:
        async with calling(authority, resolve) as caller:
            return await caller.post(destination, HEADERS, b"{}", seconds)

    return run(test())
