"""One HTTP/1.1 exchange on a wire: our request out, at most so much of an answer in.

The one rule kept here: of what a receiver sends, only so much is read, parsed and kept; whoever sends more than
HTTP/1.1 needs has not answered.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import h11

from tasks.stopwatch import Stopwatch
from tasks.wires import SLICE, Failed, Wire

HEAD_BYTES = 64 * 1024
HEADERS = 100
INTERIM_ANSWERS = 20
READ_BYTES = 64 * 1024
KEPT_BYTES = 16 * 1024
CHUNKS = 1_024
"""Pieces of a body that are looked at: 64 KiB in chunks of one byte would keep everybody waiting for 70 ms."""

_BLANK_LINE = re.compile(rb"\n\r?\n")
_BEGINNING = b"HTTP/1."
_SWITCHING = re.compile(rb"HTTP/1\.\d 101[ \r\n]")


class HungUp(Failed):
    """The receiver had ended the connection before the first byte of an answer."""


@dataclass
class Answer:
    """What came back so far; what is in it when the exchange is cut stays true."""

    begun: bool = False
    status: int | None = None
    retry_after: str | None = None
    body: bytearray = field(default_factory=bytearray)

    @property
    def text(self) -> str | None:
        """What is kept of the body; None if no answer came. PostgreSQL's text cannot hold NUL."""
        return None if self.status is None else bytes(self.body).decode("utf-8", "replace").replace("\0", "�")


async def exchange(
    wire: Wire, http: h11.Connection, request: h11.Request, body: bytes, answer: Answer, clock: Stopwatch
) -> bool:
    """Send ``request`` and read into ``answer``; True if the wire can carry another exchange.

    :raises HungUp: there is no answer, and the connection is gone.
    :raises Failed: ``bad_response``.
    :raises OSError: the connection broke in the middle.
    """
    clock.start("send")
    parts = (http.send(request), http.send(h11.Data(data=body)), http.send(h11.EndOfMessage()))
    wire.write(b"".join(part for part in parts if part))
    await wire.sent()
    clock.start("wait")
    try:
        rest = await _head(wire, http, answer, clock)
        return rest is not None and await _body(wire, http, rest, answer)
    except h11.RemoteProtocolError as error:
        # h11 quotes what it could not read after a colon, and that can be anything.
        raise Failed("bad_response", str(error).partition(":")[0]) from None


async def _head(wire: Wire, http: h11.Connection, answer: Answer, clock: Stopwatch) -> bytes | None:
    """Read status and headers; what came of the body already, or None if nothing is to follow.

    h11 gets one whole head at a time, after we have seen that it is a small one: it would parse 20,000 headers
    before anybody could count them.
    """
    head = bytearray()
    for _ in range(INTERIM_ANSWERS + 1):
        end = await _whole(wire, head, answer, clock)
        first, rest = bytes(head[:end]), head[end:]
        if _SWITCHING.match(first):  # an error to h11, for we asked for no other protocol; to us just a status
            answer.status = 101
            return None
        http.receive_data(first)
        event = http.next_event()
        if isinstance(event, h11.Response):
            answer.status = event.status_code
            asked = [value for name, value in event.headers if name == b"retry-after"]
            answer.retry_after = asked[0].decode("latin-1") if asked else None
            return bytes(rest)
        head = rest
    raise Failed("bad_response", f"more than {INTERIM_ANSWERS} interim answers")


async def _whole(wire: Wire, head: bytearray, answer: Answer, clock: Stopwatch) -> int:
    """Read until ``head`` holds a whole head (or more); returns where it ends."""
    searched = 0
    while True:
        if not head.startswith(_BEGINNING[: len(head)]):
            raise Failed("bad_response", "the answer is not HTTP/1.1")
        found = _BLANK_LINE.search(head, max(0, searched - 2))
        end = found.end() if found else len(head)
        # The number first: whoever sends too many of them is told so, however much of it came at once.
        if head.count(b"\n", 0, end) > HEADERS + 2:
            raise Failed("bad_response", f"the answer has more than {HEADERS} headers")
        if end > HEAD_BYTES:
            raise Failed("bad_response", f"the answer's headers exceed {HEAD_BYTES // 1024} KiB")
        if found:
            return end
        searched = len(head)
        try:
            data = await wire.read()
        except ConnectionError as error:
            raise _gone(answer, "the receiver reset the connection") from error
        if not data:
            raise _gone(answer, "the receiver hung up")
        if not answer.begun:
            answer.begun = True
            clock.start("receive")
        head += data


def _gone(answer: Answer, what: str) -> Failed:
    if answer.begun:
        return Failed("bad_response", f"{what} in the middle of the headers")
    return HungUp("bad_response", f"{what} without an answer")


async def _body(wire: Wire, http: h11.Connection, data: bytes, answer: Answer) -> bool:
    """Read the body until it ends or is enough; True if it ended in a way that lets the wire be used again."""
    read, pieces = len(data), 0
    if data:
        http.receive_data(data)
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            if read >= READ_BYTES:
                return False
            data = await wire.read(min(SLICE, READ_BYTES - read))
            read += len(data)
            http.receive_data(data)
        elif isinstance(event, h11.Data):
            answer.body += event.data[: KEPT_BYTES - len(answer.body)]
            pieces += 1
            if pieces == CHUNKS:
                return False
        else:
            break
    if http.our_state is not h11.DONE or http.their_state is not h11.DONE or http.trailing_data[0]:
        return False
    http.start_next_cycle()
    return True


def retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds from a Retry-After header in either of its forms; None for none and for nonsense. At least 0."""
    if value is None or len(value) > 64:
        return None
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        moment = parsedate_to_datetime(value)
        return max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - now).total_seconds())
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
