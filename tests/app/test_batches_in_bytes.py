"""The bytes of a ticket batch: gzip that lies, is cut off or explodes, and how much memory a batch may take."""

from __future__ import annotations

import gzip
import io
import random
import tracemalloc
import zlib
from collections.abc import Callable, Iterator

import msgspec
import pytest
from flask import Flask, request

from models.session import transaction
from models.tickets import add_tickets
from protocol.errors import LotteryError
from tests.app.conftest import Caller, assert_error
from tests.app.test_tickets import PATH, a_batch, a_ticket, stored
from tests.factories import RANGES, a_round

MOST = 16 * 1024 * 1024
"""Bytes of a body, as sent and as inflated."""
BATCH = 50_000
TIMES = 8
"""How many times its body a batch may take in memory."""


@pytest.fixture
def caller(operator: Callable[[], Caller]) -> Caller:
    made = operator()
    a_round([made.id])
    return made


def packed(body: bytes) -> bytes:
    """Gzip of it that is the same at any time, so that every process that collects these tests names them alike."""
    return gzip.compress(body, mtime=0)


def one_ticket() -> bytes:
    return msgspec.json.encode(a_batch(a_ticket()))


def send(caller: Caller, data: bytes, encoding: str = "gzip") -> tuple[int, str]:
    answer = caller.post(PATH, data=data, content_type="application/json", headers={"Content-Encoding": encoding})
    if answer.status_code != 200:
        assert_error(answer, answer.status_code)
        assert stored() == 0
    return answer.status_code, answer.get_json().get("code", "")


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "GZIP"])
def test_a_compressed_batch_is_inflated(caller: Caller, encoding: str) -> None:
    assert send(caller, gzip.compress(one_ticket()), encoding) == (200, "")
    assert stored() == 1


def test_a_batch_cut_off_anywhere_is_refused(caller: Caller) -> None:
    body = gzip.compress(one_ticket())
    for length in (0, 1, 9, 10, 11, len(body) // 2, *range(len(body) - 9, len(body))):
        assert send(caller, body[:length]) == (400, "bad_request"), length


@pytest.mark.parametrize("tail", [b"x", b"\0", b"\0" * 512, b"{}", packed(b""), packed(b" "), packed(one_ticket())])
def test_nothing_may_stand_behind_the_end(caller: Caller, tail: bytes) -> None:
    assert send(caller, gzip.compress(one_ticket()) + tail) == (400, "bad_request")


def test_a_batch_in_two_members_is_refused(caller: Caller) -> None:
    body = one_ticket()
    assert send(caller, gzip.compress(body[:40]) + gzip.compress(body[40:])) == (400, "bad_request")


def test_any_damaged_byte_of_the_checksum_or_the_length_is_noticed(caller: Caller) -> None:
    body = gzip.compress(one_ticket())
    for place in range(len(body) - 8, len(body)):
        damaged = bytearray(body)
        damaged[place] ^= 1
        assert send(caller, bytes(damaged)) == (400, "bad_request"), place


@pytest.mark.parametrize("body", [b"", one_ticket(), zlib.compress(one_ticket()), packed(b""), packed(b"no JSON")])
def test_what_is_not_gzip_of_json_is_refused(caller: Caller, body: bytes) -> None:
    assert send(caller, body) == (400, "bad_request")


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip", "gzip, identity", "zstd", "*"])
def test_another_encoding_is_refused(caller: Caller, encoding: str) -> None:
    assert send(caller, gzip.compress(one_ticket()), encoding)[0] == 415


def test_gzip_that_is_not_labelled_is_no_json(caller: Caller) -> None:
    assert send(caller, gzip.compress(one_ticket()), "identity") == (400, "bad_request")


def test_the_limit_is_on_what_a_batch_inflates_to_to_the_byte(caller: Caller) -> None:
    body = one_ticket()
    assert send(caller, gzip.compress(body.ljust(MOST + 1))) == (413, "too_large")
    assert send(caller, body.ljust(MOST + 1), "identity") == (413, "too_large")
    assert send(caller, gzip.compress(body.ljust(MOST))) == (200, "")
    assert send(caller, body.ljust(MOST), "identity") == (200, "")


def test_what_is_compressed_may_not_be_larger_than_what_is_not(caller: Caller) -> None:
    assert send(caller, gzip.compress(random.Random(1).randbytes(MOST), 0)) == (413, "too_large")


def a_full_batch(pick: Callable[[int], int], name: str = "t-{:012}") -> bytes:
    tickets = [
        a_ticket(
            ticketId=name.format(place),
            jackpotNumber=pick(RANGES[0]),
            **{f"bonus{tier}": pick(top) for tier, top in enumerate(RANGES[1:], 1)},
        )
        for place in range(BATCH)
    ]
    return msgspec.json.encode(a_batch(*tickets))


def right_ones() -> Iterator[bytes]:
    chance = random.Random(1)
    yield a_full_batch(lambda top: chance.randint(1, top))
    # As little text as possible around values that are objects of their own.
    yield a_full_batch(lambda top: min(top, 300), "{}")
    yield a_full_batch(lambda top: top, "{:064}")


def wrong_ones() -> Iterator[bytes]:
    right = a_full_batch(lambda top: top)
    yield right[:-2] + b',{"ticketId":"t"}]}'
    yield right.replace(b'"bonus5":100', b'"bonus5":101')
    yield right.replace(b'"isQuickPick"', b'"isQuickPick":true,"isQuickPick"')
    yield right[:-1]
    for value in (b"[]", b"{}", b"1", b'""', b"[[]]", b'{"a":1}'):
        count = MOST // (len(value) + 1) - 30
        yield b'{"roundId":1,"tickets":[' + b",".join([value] * count) + b"]}"
        yield b'{"roundId":1,"other":[' + b",".join([value] * count) + b'],"tickets":[]}'
    yield b'{"roundId":1,"tickets":[{' + b",".join(b'"%d":1' % place for place in range(1_000_000)) + b"}]}"
    yield b"[" * MOST


def most_memory(application: Flask, body: bytes, store: bool) -> int:
    """Bytes at the peak, the body's own among them, from reading it to having told PostgreSQL."""
    from app.resources.tickets import read_batch

    stream = io.BytesIO(body)
    kind = "application/json"
    with application.test_request_context(
        PATH, method="POST", input_stream=stream, content_length=len(body), content_type=kind
    ):
        tracemalloc.start()
        try:
            round_id, batch = read_batch(request)
            with transaction() as session:
                add_tickets(session, round_id, "op_a", batch)
            assert store
        except LotteryError:
            assert not store
        finally:
            most = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
    return most


def test_a_full_batch_takes_at_most_eight_times_its_body(application: Flask, caller: Caller) -> None:
    del caller
    for body in right_ones():
        for which in ("first", "again"):
            most = most_memory(application, body, store=True)
            assert most <= TIMES * len(body), f"{which}: {most / len(body):.1f}"


def test_no_wrong_batch_takes_half_of_what_the_largest_right_one_may(application: Flask) -> None:
    for body in wrong_ones():
        most = most_memory(application, body, store=False)
        assert most <= TIMES * MOST / 2, f"{most / MOST:.1f} of the largest: {body[:60]!r} ({len(body)})"
