"""Connections used again: only while they are young, open and silent, and only for the same receiver."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable

import pytest

from protocol.retry import Outcome
from tasks.addresses import Destination
from tasks.outbound import Call, Caller
from tests import hostile_receiver as hostile
from tests.authorities import Authority
from tests.callers import DEADLINE, HEADERS, NAME, PLENTY, at, calling, run, timed
from tests.hostile_receiver import Mode, misbehaving
from tests.polling import until


@contextlib.asynccontextmanager
async def moving() -> AsyncIterator[Callable[[float], None]]:
    """The loop's clock, to be moved on by so many seconds."""
    loop = asyncio.get_running_loop()
    real, ahead = loop.time, 0.0

    def move(seconds: float) -> None:
        nonlocal ahead
        ahead += seconds

    loop.time = lambda: real() + ahead  # type: ignore[method-assign]
    try:
        yield move
    finally:
        del loop.time


async def so(condition: Callable[[], object]) -> None:
    """Until it is so; the test's own time limit ends what never is."""
    while not condition():
        await asyncio.sleep(0.01)


async def calls(caller: Caller, destination: Destination, times: int) -> list[Call]:
    return [await caller.post(destination, HEADERS, b"{}", PLENTY) for _ in range(times)]


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_connection_is_used_again(authority: Authority, scheme: str) -> None:
    asked: list[Destination] = []

    async def resolve(destination: Destination) -> list[str]:
        asked.append(destination)
        return ["127.0.0.1"]

    async def test(port: int) -> list[Call]:
        async with calling(authority, resolve) as caller:
            return await calls(caller, at(port, scheme), 5)

    with misbehaving(hostile.well, authority.context(NAME) if scheme == "https" else None) as receiver:
        first, *others = run(test(receiver.port))
        assert (receiver.connections, len(receiver.requests), len(asked)) == (1, 5, 1)
    assert not first.reused
    for call in others:
        assert (call.reused, call.peer, call.outcome, call.body) == (True, "127.0.0.1", Outcome(status=200), "thanks")
        assert (call.phases.dns, call.phases.connect, call.phases.tls) == (None, None, None)
        assert None not in (call.phases.send, call.phases.wait, call.phases.receive)


NOT_AGAIN: dict[str, Mode] = {
    "says close": hostile.answering(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
    "speaks HTTP/1.0": hostile.answering(b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"),
    "speaks out of turn": hostile.speaks_out_of_turn,
    "switches protocols": hostile.answering(b"HTTP/1.1 101 Switching Protocols\r\n\r\n"),
    "sends more than we read": hostile.endless_body,
    "has not read our request": hostile.answers_before_the_body_is_read,
}


@pytest.mark.parametrize("name", NOT_AGAIN)
def test_a_connection_in_doubt_is_not_used_again(name: str) -> None:
    async def test(port: int) -> list[Call]:
        body = b"x" * 20_000_000 if name == "has not read our request" else b"{}"
        async with calling() as caller:
            return [await caller.post(at(port), HEADERS, body, PLENTY) for _ in range(2)]

    with misbehaving(NOT_AGAIN[name]) as receiver:
        assert [call.reused for call in run(test(receiver.port))] == [False, False]
        assert receiver.connections == 2


def test_a_connection_whose_answer_was_cut_is_not_used_again() -> None:
    answers = iter([hostile.never_answers, hostile.well])

    async def test(port: int) -> tuple[Call, Call]:
        async with calling() as caller:
            return (
                await caller.post(at(port), HEADERS, b"{}", DEADLINE),
                await caller.post(at(port), HEADERS, b"{}", PLENTY),
            )

    with misbehaving(lambda visit: next(answers)(visit)) as receiver:
        cut, fine = run(test(receiver.port))
    assert (cut.outcome, fine.outcome, fine.reused) == (Outcome(error_class="timeout"), Outcome(status=200), False)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_hang_up_before_the_answer_on_a_used_connection_is_tried_again_on_a_new_one(
    authority: Authority, scheme: str
) -> None:
    async def test(port: int) -> list[Call]:
        async with calling(authority) as caller:
            return await calls(caller, at(port, scheme), 2)

    tls = authority.context(NAME) if scheme == "https" else None
    with misbehaving(hostile.hangs_up_after_one, tls) as receiver:
        _, call = run(test(receiver.port))
        assert (receiver.connections, len(receiver.requests)) == (2, 3)
    assert (call.outcome, call.reused, call.detail) == (Outcome(status=200), False, None)
    assert call.phases.connect is not None


def test_it_is_tried_again_once_only() -> None:
    def mode(visit: hostile.Visit) -> None:
        if visit.state.connections == 1:
            hostile.hangs_up_after_one(visit)
        else:
            hostile.resets(visit)

    async def test(port: int) -> list[Call]:
        async with calling() as caller:
            return await calls(caller, at(port), 2)

    with misbehaving(mode) as receiver:
        _, call = run(test(receiver.port))
        assert receiver.connections == 2
    assert call.outcome == Outcome(error_class="bad_response")
    assert call.detail == "the receiver reset the connection without an answer"


def test_an_answer_that_has_begun_is_not_asked_for_again() -> None:
    def mode(visit: hostile.Visit) -> None:
        visit.request()
        visit.send(hostile.OK)
        visit.request()
        visit.send(b"HTTP/1.1 2")

    async def test(port: int) -> list[Call]:
        async with calling() as caller:
            return await calls(caller, at(port), 2)

    with misbehaving(mode) as receiver:
        _, call = run(test(receiver.port))
        assert receiver.connections == 1
    assert (call.outcome, call.reused) == (Outcome(error_class="bad_response"), True)


def test_the_second_try_has_what_is_left_of_the_deadline() -> None:
    def mode(visit: hostile.Visit) -> None:
        if visit.state.connections == 1:
            hostile.hangs_up_after_one(visit)
        else:
            hostile.never_answers(visit)

    async def test(port: int) -> tuple[Call, bool]:
        async with calling() as caller:
            await caller.post(at(port), HEADERS, b"{}", PLENTY)
            return await timed(caller, at(port), b"{}")

    with misbehaving(mode) as receiver:
        call, late = run(test(receiver.port))
    assert call.outcome == Outcome(error_class="timeout")
    assert not late


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_receiver_that_hangs_up_or_speaks_between_calls_is_hung_up_on(authority: Authority, scheme: str) -> None:
    speak, hung_up = threading.Event(), threading.Event()

    def mode(visit: hostile.Visit) -> None:
        visit.request()
        visit.send(hostile.OK)
        if visit.state.connections == 1:
            speak.wait(PLENTY)
            visit.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        elif visit.state.connections == 2:
            return
        with contextlib.suppress(OSError):
            visit.sock.recv(1)
        hung_up.set()

    async def test(port: int) -> None:
        async with calling(authority) as caller:
            await calls(caller, at(port, scheme), 1)
            speak.set()
            await so(hung_up.is_set)
            for _ in range(2):
                [call] = await calls(caller, at(port, scheme), 1)
                assert (call.outcome, call.reused) == (Outcome(status=200), False)
            hung_up.clear()

    with misbehaving(mode, authority.context(NAME) if scheme == "https" else None) as receiver:
        run(test(receiver.port))
        assert receiver.connections == 3
        until(hung_up.is_set, what="closing the caller hangs up")


def test_a_connection_is_used_for_the_host_it_was_made_for_only(authority: Authority) -> None:
    async def test(port: int) -> list[Call]:
        async with calling(authority) as caller:
            return [
                await caller.post(at(port, "https", host), HEADERS, b"{}", PLENTY) for host in (NAME, "other.example")
            ]

    with misbehaving(hostile.well, authority.context(NAME)) as receiver:
        right, wrong = run(test(receiver.port))
        assert receiver.names == [NAME, "other.example"]
    assert (right.outcome, wrong.outcome) == (Outcome(status=200), Outcome(error_class="tls"))


def test_at_most_two_wait_for_one_receiver_and_so_many_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.connections.IDLE_IN_ALL", 4)
    left: list[int] = []

    def mode(visit: hostile.Visit) -> None:
        visit.request()
        until(lambda: len(visit.state.requests) >= 5)  # nobody is answered before all five have connected
        visit.send(hostile.OK)
        hostile.well(visit)
        left.append(1)

    async def test(port: int) -> None:
        async with calling() as caller:
            await asyncio.gather(*(caller.post(at(port), HEADERS, b"{}", PLENTY) for _ in range(5)))
            await so(lambda: len(left) == 3)
            for host in ("b.example", "c.example", "d.example"):
                await caller.post(at(port, host=host), HEADERS, b"{}", PLENTY)
            await so(lambda: len(left) == 4)
            # The one that had waited longest went; the other is still there.
            assert [call.reused for call in await calls(caller, at(port), 1)] == [True]
            assert len(left) == 4

    with misbehaving(mode) as receiver:
        run(test(receiver.port))


def test_a_connection_waits_15_seconds_and_lives_60() -> None:
    async def test(port: int) -> None:
        async with calling() as caller, moving() as move:
            assert [call.reused for call in await calls(caller, at(port), 2)] == [False, True]
            move(14.0)
            assert [call.reused for call in await calls(caller, at(port), 1)] == [True]
            move(15.5)
            assert [call.reused for call in await calls(caller, at(port), 1)] == [False]
            for _ in range(5):
                move(11.5)
                assert [call.reused for call in await calls(caller, at(port), 1)] == [True]
            move(11.5)
            assert [call.reused for call in await calls(caller, at(port), 1)] == [False]

    with misbehaving(hostile.well) as receiver:
        run(test(receiver.port))
        assert receiver.connections == 3


def test_connections_nobody_asks_for_again_are_hung_up_in_time() -> None:
    left: list[int] = []

    def mode(visit: hostile.Visit) -> None:
        hostile.well(visit)
        left.append(1)

    async def test(port: int) -> None:
        async with calling() as caller, moving() as move:
            await calls(caller, at(port), 1)
            move(8.0)
            await calls(caller, at(port, host="b.example"), 1)
            move(8.0)
            await so(lambda: len(left) == 1)
            move(8.0)
            await so(lambda: len(left) == 2)

    with misbehaving(mode) as receiver:
        run(test(receiver.port))
