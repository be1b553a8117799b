"""What the answers of receivers that misbehave amount to, and that no more of them is kept than we said."""

from __future__ import annotations

import asyncio
import contextlib
import tracemalloc
from datetime import UTC, datetime

import pytest

from protocol.retry import Outcome, error_class_of
from tasks.addresses import Destination
from tasks.exchange import CHUNKS, KEPT_BYTES, retry_after
from tasks.outbound import Call, _request
from tests import hostile_receiver as hostile
from tests.authorities import Authority
from tests.callers import HEADERS, NAME, PLENTY, at, calling, one_call, run
from tests.hostile_receiver import Hostile, Mode, misbehaving

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
KIB_64 = "the answer's headers exceed 64 KiB"
ANSWERS: dict[str, tuple[Mode, str | None, int | None, str | None, str | None]] = {
    # name: mode, error class, status, body, detail
    "answers well": (hostile.well, None, 200, "thanks", None),
    "answers without a body": (hostile.keeping(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), None, 200, "", None),
    "ends its body by hanging up": (hostile.ending(b"HTTP/1.0 200 OK\r\n\r\nbye"), None, 200, "bye", None),
    "answers in chunks": (hostile.keeping(CHUNKED + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"), None, 200, "abcde", None),
    "is not UTF-8": (
        hostile.ending(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n\xff\0a"), None, 200, "��a", None,
    ),
    "204": (hostile.keeping(b"HTTP/1.1 204 No Content\r\n\r\n"), "status_2xx", 204, "", None),
    "redirects": (
        hostile.keeping(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"),
        "status_3xx", 302, "", None,
    ),
    "404": (hostile.keeping(b"HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno"), "status_4xx", 404, "no", None),
    "500": (hostile.keeping(b"HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno"), "status_5xx", 500, "no", None),
    "999": (hostile.keeping(b"HTTP/1.1 999 No\r\nContent-Length: 0\r\n\r\n"), "status_other", 999, "", None),
    "100 then 200": (hostile.keeping(b"HTTP/1.1 100 Continue\r\n\r\n" + hostile.OK), None, 200, "thanks", None),
    "103 then 200": (
        hostile.keeping(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + hostile.OK), None, 200, "thanks", None,
    ),
    "101": (
        hostile.answering(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\nrest"),
        "status_1xx", 101, "", None,
    ),
    "answers before it has read": (hostile.answers_before_the_body_is_read, "status_4xx", 413, "", None),
    "never ends its body": (hostile.endless_body, None, 200, "y" * KEPT_BYTES, None),
    "never ends its tiny chunks": (hostile.endless_tiny_chunks, None, 200, "z" * CHUNKS, None),
    "never ends its trailers": (hostile.endless_trailers, None, 200, "", None),
    "declares a huge body": (
        hostile.ending(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n" + b"z" * 70_000),
        None, 200, "z" * KEPT_BYTES, None,
    ),
    "gzip bomb": (
        hostile.keeping(
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(hostile.GZIP_BOMB)
            + hostile.GZIP_BOMB
        ),
        None, 200, hostile.GZIP_BOMB[:KEPT_BYTES].decode("utf-8", "replace").replace("\0", "�"), None,
    ),
    "endless headers": (hostile.endless_headers, "bad_response", None, None, "the answer has more than 100 headers"),
    "one endless header": (hostile.one_endless_header, "bad_response", None, None, KIB_64),
    "endless interim answers": (
        hostile.endless_interim_answers, "bad_response", None, None, "more than 20 interim answers",
    ),
    "many small headers": (
        hostile.ending(b"HTTP/1.1 200 OK\r\n" + b"a:\r\n" * 101 + b"\r\n"),
        "bad_response", None, None, "the answer has more than 100 headers",
    ),
    "as many headers as may be": (
        hostile.ending(b"HTTP/1.1 200 OK\r\n" + b"a:\r\n" * 100 + b"\r\n"), None, 200, "", None,
    ),
    "two lengths": (
        hostile.ending(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
        "bad_response", None, None, "conflicting Content-Length headers",
    ),
    "garbage": (hostile.ending(b"\x00\xff\x17garbage"), "bad_response", None, None, "the answer is not HTTP/1.1"),
    "HTTP/0.9": (hostile.ending(b"<html>hello</html>"), "bad_response", None, None, "the answer is not HTTP/1.1"),
    "HTTP/2": (
        hostile.answering(b"\0\0\x12\x04\0\0\0\0\0\0\x03\0\0\0\x80"),
        "bad_response", None, None, "the answer is not HTTP/1.1",
    ),
    "echoes the request": (
        hostile.ending(b"POST /hook HTTP/1.1\r\n\r\n"), "bad_response", None, None, "the answer is not HTTP/1.1",
    ),
    "no status": (hostile.ending(b"HTTP/1.1 what\r\n\r\n"), "bad_response", None, None, "illegal status line"),
    "a header without a name": (
        hostile.ending(b"HTTP/1.1 200 OK\r\nsecret\r\n\r\n"), "bad_response", None, None, "illegal header line",
    ),
    "closes at once": (
        hostile.closes_at_once, "bad_response", None, None, "the receiver reset the connection without an answer",
    ),
    "closes after the request": (
        hostile.closes_after_the_request, "bad_response", None, None, "the receiver hung up without an answer",
    ),
    "resets": (hostile.resets, "bad_response", None, None, "the receiver reset the connection without an answer"),
    "ends in its headers": (
        hostile.ending(b"HTTP/1.1 200 OK\r\nContent-"),
        "bad_response", None, None, "the receiver hung up in the middle of the headers",
    ),
    "ends in its body": (
        hostile.ending(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"),
        "bad_response", None, "ab",
        "peer closed connection without sending complete message body (received 2 bytes, expected 5)",
    ),
}  # fmt: skip


def test_every_answer_is_what_it_is_and_no_more_of_it_is_kept_than_we_said(authority: Authority) -> None:
    async def test(ports: dict[tuple[str, str], int]) -> dict[tuple[str, str], Call]:
        async with calling(authority) as caller:
            calls = [caller.post(at(port, scheme), HEADERS, b"{}", PLENTY) for (_, scheme), port in ports.items()]
            return dict(zip(ports, await asyncio.gather(*calls), strict=True))

    with contextlib.ExitStack() as stack:
        states: dict[tuple[str, str], Hostile] = {}
        for name, (mode, *_) in ANSWERS.items():
            states[name, "http"] = stack.enter_context(misbehaving(mode))
            states[name, "https"] = stack.enter_context(misbehaving(mode, authority.context(NAME)))
        found = run(test({key: state.port for key, state in states.items()}))
        for (name, scheme), call in found.items():
            _, error_class, status, body, detail = ANSWERS[name]
            where = (name, scheme, call)
            assert error_class_of(call.outcome) == error_class, where
            assert call.outcome.status == status, where
            assert call.body == body, where
            # A hang-up can reach us as a reset or as an end, depending on what was still on its way.
            assert (call.detail or "").replace("hung up", "reset the connection") == (detail or "").replace(
                "hung up", "reset the connection"
            ), where
            assert call.peer == "127.0.0.1"
            assert not call.ours
            assert None not in (call.phases.dns, call.phases.connect, call.phases.send), where
            assert states[name, scheme].connections == 1, where


def test_the_request_is_what_was_asked_for() -> None:
    with misbehaving(hostile.well) as receiver:
        one_call(at(receiver.port), PLENTY)
        [(head, body)] = receiver.requests
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /hook?a=1 HTTP/1.1"
    assert [line.lower() for line in lines[1:]] == [
        f"host: {NAME}:{receiver.port}",
        "content-length: 2",
        "accept-encoding: identity",
        "content-type: application/json",
        "webhook-id: 1",
    ]
    assert body == b"{}"


@pytest.mark.parametrize(
    ("scheme", "host", "port", "said"),
    [
        ("https", "a.example", 443, b"a.example"),
        ("http", "a.example", 80, b"a.example"),
        ("http", "a.example", 443, b"a.example:443"),
        ("https", "2001:db8::1", 443, b"[2001:db8::1]"),
        ("https", "2001:db8::1", 8443, b"[2001:db8::1]:8443"),
    ],
)
def test_the_host_header_names_the_port_only_where_it_must(scheme: str, host: str, port: int, said: bytes) -> None:
    request = _request(Destination(scheme, host, port, "/"), {}, b"")
    assert dict(request.headers)[b"host"] == said


def test_a_retry_after_is_handed_on() -> None:
    answer = b"HTTP/1.1 503 No\r\nRetry-After: 120\r\nContent-Length: 0\r\n\r\n"
    with misbehaving(hostile.keeping(answer)) as receiver:
        assert one_call(at(receiver.port), PLENTY).outcome == Outcome(status=503, retry_after=120.0)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("0", 0.0),
        ("120", 120.0),
        ("9" * 60, 999_999_999.0),
        ("9" * 5_000, None),
        ("-1", None),
        ("1.5", None),
        ("", None),
        ("soon", None),
        ("١٢", None),
        ("Sat, 21 Nov 2026 10:02:00 GMT", 120.0),
        ("Sat, 21 Nov 2026 10:02:00", 120.0),
        ("Sat, 21 Nov 2026 09:00:00 GMT", 0.0),
        ("Sat, 21 Nov 99999 09:00:00 GMT", None),
        ("Mon, 01 Jan 0001 00:00:00 +2359", 0.0),
        ("Fri, 31 Dec 9999 23:59:59 -2359", 251_607_131_939.0),
        ("Sat, 21 Nov 2026 10:02:00 +99999999999999", None),
        ("Sat, 21 Nov 2026 99:99:99 GMT", None),
    ],
)
def test_a_retry_after_is_seconds_or_a_date_and_nonsense_is_none(value: str | None, seconds: float | None) -> None:
    assert retry_after(value, datetime(2026, 11, 21, 10, 0, tzinfo=UTC)) == seconds


def test_a_flood_costs_a_bounded_amount_of_memory(authority: Authority) -> None:
    floods = (hostile.endless_body, hostile.endless_tiny_chunks, hostile.one_endless_header, hostile.endless_trailers)

    async def test(ports: list[int]) -> int:
        async with calling(authority) as caller:
            await asyncio.gather(*(caller.post(at(port, "https"), HEADERS, b"{}", PLENTY) for port in ports))
            tracemalloc.start()
            try:
                for _ in range(3):
                    await asyncio.gather(*(caller.post(at(port, "https"), HEADERS, b"{}", PLENTY) for port in ports))
                return tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()

    with contextlib.ExitStack() as stack:
        ports = [stack.enter_context(misbehaving(mode, authority.context(NAME))).port for mode in floods]
        most = run(test(ports))
    assert most < len(floods) * 2_000_000
