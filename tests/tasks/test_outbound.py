"""Calling receivers that misbehave: one deadline over everything, only where we meant to, and whose fault it was."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import resource
import socket
import ssl
import threading
import time
from collections.abc import Iterable
from dataclasses import astuple
from pathlib import Path

import pytest

from protocol.retry import Outcome
from tasks.addresses import Destination, RefusedAddress, ResolverDown, UnknownHost
from tasks.dialling import ours
from tasks.outbound import Call, trust
from tests import hostile_receiver as hostile
from tests.authorities import Authority
from tests.callers import DEADLINE, GRACE, HEADERS, NAME, PLENTY, at, calling, one_call, run, timed
from tests.hostile_receiver import Hostile, Mode, misbehaving
from tests.polling import until

# What ends at the deadline and not later.

CUT = {
    "dns": "the name was not resolved in time",
    "connect": "no answer to connecting in time",
    "tls": "the TLS handshake did not end in time",
    "send": "the receiver did not take the request in time",
    "wait": "no answer in time",
    "receive": "the answer did not end in time",
}
HANGING: dict[str, tuple[Mode, str]] = {
    "never answers": (hostile.never_answers, "wait"),
    "drips its body": (hostile.drips_body, "receive"),
    "drips chunks": (hostile.drips_chunks, "receive"),
    "drips headers": (hostile.drips_headers, "receive"),
    "drips interim answers": (hostile.drips_interim_answers, "receive"),
    "declares more than it sends": (
        hostile.answering(b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\nx"),
        "receive",
    ),
    "does not end its headers": (hostile.answering(b"HTTP/1.1 200 OK\r\n"), "receive"),
    "sends half a status line": (hostile.answering(b"HTTP"), "receive"),
    "100 and then nothing": (hostile.answering(b"HTTP/1.1 100 Continue\r\n\r\n"), "receive"),
    "does not read": (hostile.does_not_read, "send"),
}


SLOW_NAME = "slow.example"


async def sometimes_slow(destination: Destination) -> list[str]:
    if destination.host == SLOW_NAME:
        await asyncio.Event().wait()
    return ["127.0.0.1"]


def test_whatever_a_receiver_does_the_call_ends_at_its_deadline(authority: Authority) -> None:
    where: dict[str, tuple[Destination, str]] = {}  # and the phase in which the call is cut
    states: dict[str, Hostile] = {}

    async def test(names: Iterable[str], seconds: float) -> tuple[dict[str, tuple[Call, bool]], float]:
        async with calling(authority, sometimes_slow) as caller:
            began = time.thread_time()
            # More than the kernel takes from us for a receiver that does not read.
            bodies = [b"x" * 10_000_000 if "does not read" in name else b"{}" for name in names]
            calls = [timed(caller, where[name][0], body, seconds) for name, body in zip(names, bodies, strict=True)]
            return dict(zip(names, await asyncio.gather(*calls), strict=True)), time.thread_time() - began

    with contextlib.ExitStack() as stack:
        for name, (mode, phase) in HANGING.items():
            for scheme, tls in (("http", None), ("https", authority.context(NAME))):
                states[f"{name} {scheme}"] = state = stack.enter_context(misbehaving(mode, tls))
                where[f"{name} {scheme}"] = at(state.port, scheme), phase
        states["says nothing of TLS"] = mute = stack.enter_context(misbehaving(hostile.never_answers))
        where["says nothing of TLS"] = at(mute.port, "https"), "tls"
        where["accepts nothing"] = at(stack.enter_context(hostile.not_accepting())), "connect"
        where["has no name yet"] = at(mute.port, host=SLOW_NAME), "dns"

        calls, computing = run(test(where, DEADLINE))
        # Where a receiver, a thread of ours, did not get the processor to misbehave in time: the same with more of it.
        again = [name for name, (call, _) in calls.items() if not (call.detail or "").endswith(CUT[where[name][1]])]
        calls.update(run(test(again, 10 * DEADLINE))[0])
        for name, (call, late) in calls.items():
            destination, phase = where[name]
            assert call.outcome == Outcome(error_class="timeout"), (name, call)
            assert not late, (name, call)
            assert not call.ours, name
            assert not call.reused, name
            assert call.peer == (None if phase == "dns" else "127.0.0.1"), name
            assert (call.phases.tls is not None) == (destination.scheme == "https"), name
            assert sum(seconds for seconds in astuple(call.phases) if seconds) == pytest.approx(call.seconds), name
            assert (call.detail or "").endswith(CUT[phase]), (name, call)
        until(lambda: {state.connections for state in states.values()} <= {1, 2}, what="one call is one connection")
    # Nor did any of them make us compute for so long that the others were late.
    assert computing < GRACE


def test_a_whole_head_of_200_without_the_end_of_its_body_is_a_timeout() -> None:
    with misbehaving(hostile.answering(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf\0")) as receiver:
        call = one_call(at(receiver.port), DEADLINE)
        if call.body is None:  # the receiver did not get the processor in time
            call = one_call(at(receiver.port), 10 * DEADLINE)
    assert (call.outcome, call.body) == (Outcome(error_class="timeout"), "half�")
    assert call.detail == "status 200, but the answer did not end in time"


# Whom we talk to.


def test_we_connect_where_the_resolver_said_and_check_the_name_that_was_asked_for(authority: Authority) -> None:
    asked: list[Destination] = []

    async def resolve(destination: Destination) -> list[str]:
        asked.append(destination)
        return ["127.0.0.1"]

    with misbehaving(hostile.well, authority.context("made-up.example")) as receiver:
        destination = at(receiver.port, "https", "made-up.example")
        call = one_call(destination, PLENTY, authority, resolve=resolve)
    assert (call.outcome, call.peer, call.detail) == (Outcome(status=200), "127.0.0.1", None)
    assert asked == [destination]
    assert receiver.names == ["made-up.example"]


def test_a_header_cannot_lead_the_call_elsewhere(authority: Authority) -> None:
    with misbehaving(hostile.well, authority.context(NAME)) as right, misbehaving(hostile.well) as wrong:
        tricks = {"X-Forwarded-Host": f"127.0.0.1:{wrong.port}", "Forwarded": f"host=127.0.0.1:{wrong.port}"}

        async def test() -> Call:
            async with calling(authority) as caller:
                target = f"http://127.0.0.1:{wrong.port}/"
                return await caller.post(at(right.port, "https", target=target), tricks, b"{}", PLENTY)  # type: ignore[no-any-return]

        assert run(test()).outcome == Outcome(status=200)
    assert (right.connections, wrong.connections) == (1, 0)


@pytest.mark.parametrize("returned", ["localhost", NAME, "fe80::1%lo", "127.1", "", "0x7f000001"])
def test_a_name_is_never_connected_to(returned: str) -> None:
    async def resolve(_: Destination) -> list[str]:
        return [returned]

    call = one_call(at(80), PLENTY, resolve=resolve)
    assert call.outcome == Outcome(error_class="refused_address")


def test_proxies_of_the_environment_are_not_asked(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    with misbehaving(hostile.well) as proxy, misbehaving(hostile.well, authority.context(NAME)) as receiver:
        for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("SSL_CERT_FILE", "/nowhere")
        assert one_call(at(receiver.port, "https"), PLENTY, authority).outcome == Outcome(status=200)
    assert proxy.connections == 0


def test_the_next_address_is_tried_when_one_refuses_or_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolve(_: Destination) -> list[str]:
        return ["127.0.0.2", "127.0.0.3", "127.0.0.1"]

    with misbehaving(hostile.well) as receiver:  # listens at 127.0.0.1 only
        call = one_call(at(receiver.port), PLENTY, resolve=resolve)
    assert (call.outcome, call.peer) == (Outcome(status=200), "127.0.0.1")

    async def silent_first(_: Destination) -> list[str]:
        return ["127.0.0.1", "127.0.0.2"]

    monkeypatch.setattr("tasks.dialling.ADDRESS_SECONDS", 0.2)
    with hostile.not_accepting() as port:
        call = one_call(at(port), PLENTY, resolve=silent_first)
    assert (call.outcome, call.peer) == (Outcome(error_class="connect"), "127.0.0.2")
    assert call.seconds > 0.19


def test_ipv6_is_spoken() -> None:
    async def resolve(_: Destination) -> list[str]:
        return ["::1"]

    with misbehaving(hostile.well, address="::1") as receiver:
        call = one_call(at(receiver.port, host="::1"), PLENTY, resolve=resolve)
    assert (call.outcome, call.peer) == (Outcome(status=200), "::1")


# Certificates.


def shown(authority: Authority, tls: ssl.SSLContext, host: str = NAME, mode: Mode = hostile.well) -> Call:
    with misbehaving(mode, tls) as receiver:
        call = one_call(at(receiver.port, "https", host), PLENTY, authority)
        assert receiver.requests == [] or call.outcome.status == 200
    return call


def test_a_certificate_must_be_valid_for_the_host_and_signed_by_somebody_we_trust(authority: Authority) -> None:
    def refused(tls: ssl.SSLContext, host: str = NAME) -> str | None:
        call = shown(authority, tls, host)
        assert (call.outcome, call.ours, call.peer) == (Outcome(error_class="tls"), False, "127.0.0.1")
        assert call.phases.tls is not None
        assert call.phases.send is None
        return call.detail

    assert refused(authority.context(NAME, expired=True)) == "certificate has expired"
    assert refused(authority.context(NAME, signed_by_itself=True)) == "self-signed certificate"
    assert refused(authority.context("other.example")) == (
        "Hostname mismatch, certificate is not valid for 'receiver.example'."
    )
    assert refused(authority.context(NAME), "127.0.0.1") == (
        "IP address mismatch, certificate is not valid for '127.0.0.1'."
    )
    assert refused(authority.old_context(NAME)) == "tlsv1 alert protocol version"
    assert refused(authority.context("127.0.0.1"), NAME) is not None
    assert refused(authority.context("*.example.com"), "a.b.example.com") is not None


def test_a_certificate_may_be_for_an_address_or_a_wildcard(authority: Authority) -> None:
    assert shown(authority, authority.context("127.0.0.1"), "127.0.0.1").outcome == Outcome(status=200)
    assert shown(authority, authority.context("*.example.com"), "a.example.com").outcome == Outcome(status=200)
    assert shown(authority, authority.context(NAME), NAME + ".").outcome == Outcome(status=200)


def test_a_private_authority_is_believed_only_where_it_was_named(authority: Authority) -> None:
    with misbehaving(hostile.well, authority.context(NAME)) as receiver:
        call = one_call(at(receiver.port, "https"), PLENTY)
    assert call.outcome == Outcome(error_class="tls")
    assert call.detail == "unable to get local issuer certificate"


def test_plain_http_or_a_hang_up_on_the_tls_port_is_a_failure_of_tls() -> None:
    def speaks_first(visit: hostile.Visit) -> None:
        visit.send(hostile.OK)
        visit.linger()

    def understands_nothing(visit: hostile.Visit) -> None:
        visit.sock.recv(65_536)
        visit.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    for mode in (speaks_first, understands_nothing):
        with misbehaving(mode) as plain:
            call = one_call(at(plain.port, "https"), PLENTY)
        assert call.outcome == Outcome(error_class="tls")
        assert call.detail == "the receiver does not speak TLS on this port"
    with misbehaving(hostile.closes_at_once) as closing:
        call = one_call(at(closing.port, "https"), PLENTY)
    assert call.outcome == Outcome(error_class="tls")
    assert call.detail == "the receiver hung up in the TLS handshake"


def test_tls_that_talks_without_end_is_ended(authority: Authority) -> None:
    tls = authority.context(NAME)
    tls.num_tickets = 4_000
    with misbehaving(hostile.never_answers, tls) as receiver:
        call = one_call(at(receiver.port, "https"), PLENTY, authority)
    assert call.outcome == Outcome(error_class="tls")
    assert call.detail == "TLS goes on without an answer"


# Whose fault it is.


def test_what_the_resolver_says_is_told_apart() -> None:
    def said(problem: Exception) -> tuple[str | None, bool]:
        async def resolve(_: Destination) -> list[str]:
            raise problem

        call = one_call(at(80), PLENTY, resolve=resolve)
        assert (call.peer, call.body, call.phases.connect) == (None, None, None)
        assert call.phases.dns is not None
        return call.outcome.error_class, call.ours

    assert said(RefusedAddress("not public")) == ("refused_address", False)
    assert said(UnknownHost("no such name")) == ("dns", False)
    assert said(ResolverDown("no answer")) == ("dns", True)
    assert said(OSError(24, "Too many open files")) == ("dns", True)
    assert said(ZeroDivisionError()) == ("unknown", False)


def test_a_refused_connection_is_the_receivers_and_a_lack_of_sockets_is_ours() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    call = one_call(at(port), PLENTY)
    assert (call.outcome, call.ours) == (Outcome(error_class="connect"), False)
    assert (call.detail, call.peer) == ("Connection refused", "127.0.0.1")

    async def test() -> Call:
        async with calling() as caller:
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
            try:
                return await caller.post(at(port), HEADERS, b"{}", PLENTY)  # type: ignore[no-any-return]
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    call = run(test())
    assert (call.outcome, call.ours) == (Outcome(error_class="connect"), True)
    assert call.detail == "Too many open files"


@pytest.mark.parametrize(
    ("number", "address", "fault"),
    [
        (errno.ENFILE, "192.0.2.1", True),
        (errno.ENOBUFS, "2001:db8::1", True),
        (errno.ENOMEM, "192.0.2.1", True),
        (errno.ENETDOWN, "2001:db8::1", True),
        (errno.EADDRNOTAVAIL, "192.0.2.1", True),
        (errno.ENETUNREACH, "192.0.2.1", True),
        # A receiver that has IPv6 only, where we have none, must not be called for ever.
        (errno.EADDRNOTAVAIL, "2001:db8::1", False),
        (errno.ENETUNREACH, "2001:db8::1", False),
        (errno.EHOSTUNREACH, "192.0.2.1", False),
        (errno.ECONNREFUSED, "192.0.2.1", False),
    ],
)
def test_a_lack_of_ports_or_routes_is_ours_unless_it_may_be_a_lack_of_ipv6(
    number: int, address: str, fault: bool
) -> None:
    assert ours(OSError(number, "made up"), address) is fault


def test_authorities_that_cannot_be_read_are_said_so_at_once(tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("")
    for name in ("missing.pem", "empty.pem"):
        with pytest.raises(OSError, match=r"No such file|NO_CERTIFICATE"):
            trust(str(tmp_path / name))


def test_a_call_under_way_when_the_caller_closes_leaves_no_connection_behind() -> None:
    left = threading.Event()

    def mode(visit: hostile.Visit) -> None:
        visit.request()
        going_on.wait(PLENTY)
        visit.send(hostile.OK)
        visit.linger()
        left.set()

    async def test(port: int) -> Call:
        async with calling() as caller:
            task = asyncio.create_task(caller.post(at(port), HEADERS, b"{}", PLENTY))
            while not receiver.requests:
                await asyncio.sleep(0.01)
        going_on.set()
        call = await task
        assert await asyncio.to_thread(left.wait, PLENTY)
        return call

    going_on = threading.Event()
    with misbehaving(mode) as receiver:
        assert run(test(receiver.port)).outcome == Outcome(status=200)


def test_a_cancelled_call_hangs_up(authority: Authority) -> None:
    async def test(port: int) -> None:
        async with calling(authority) as caller:
            task = asyncio.create_task(caller.post(at(port, "https"), HEADERS, b"{}", PLENTY))
            while not receiver.requests:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    left: list[bool] = []

    def mode(visit: hostile.Visit) -> None:
        hostile.never_answers(visit)
        left.append(True)

    with misbehaving(mode, authority.context(NAME)) as receiver:
        run(test(receiver.port))
        until(lambda: left)
