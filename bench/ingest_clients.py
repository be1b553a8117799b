"""The operators of `bench.ingest` in a process of their own: every byte they send is made before the clock runs.

The one rule kept here: whoever is measured gets the same tickets in the same batches over as many connections.
"""

from __future__ import annotations

import http.client
import json
import random
import time
import zlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import Any, NamedTuple

import psycopg2

from models.tickets import COLUMNS, partition

OPERATORS = 4
BATCHES = 2
"""Of each operator."""
BATCH = 50_000
PLAIN_BATCH = 10_000
"""The plain way is slow: it gets the first tickets of one batch of each operator."""
_RANGES = (10_000_000, 1_000_000, 100_000, 10_000, 1_000, 100)
_FIELDS = ("ticketId", "jackpotNumber", "bonus1", "bonus2", "bonus3", "bonus4", "bonus5", "isQuickPick")
_COPIED_AT_ONCE = 1 << 20


class _Batch(NamedTuple):
    tickets: bytes  # JSON
    deflated: Any  # the beginning of a body, compressed: a compressor to be copied, and what it has put out
    begun: bytes
    rows: bytes  # of COPY, without the operator


_batches: list[_Batch] = []
_plain: list[bytes] = []
_database = ""


def prepare(database_url: str) -> None:
    """Make every operator's batches, once for all measurements."""
    global _database
    _database = database_url.replace("+psycopg2", "")
    chance = random.Random(1)
    for _ in range(OPERATORS):
        for batch in range(BATCHES):
            tickets = [_ticket(chance, batch * BATCH + place) for place in range(BATCH)]
            written = _json(tickets)
            deflated = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
            begun = deflated.compress(b'{"tickets":' + written)
            rows = "".join("\t".join(map(str, ticket)) + "\n" for ticket in tickets).encode()
            _batches.append(_Batch(written, deflated, begun, rows))
        _plain.append(_json(tickets[:PLAIN_BATCH]))


def _ticket(chance: random.Random, place: int) -> tuple[Any, ...]:
    numbers = (chance.randint(1, top) for top in _RANGES)
    return (f"t-{place:012}", *numbers, chance.random() < 0.8)


def _json(tickets: list[tuple[Any, ...]]) -> bytes:
    named = [dict(zip(_FIELDS, ticket, strict=True)) for ticket in tickets]
    return json.dumps(named, separators=(",", ":")).encode()


def tickets_of(name: str) -> int:
    """How many tickets one measurement sends."""
    return OPERATORS * (PLAIN_BATCH if name == "plain" else BATCHES * BATCH)


def send(name: str, round_id: int, port: int, keys: Mapping[str, str]) -> float:
    """Every operator at once (but "one"), its batches one by one; seconds from the first byte to the last answer."""
    ways = {"json": _over_http, "gzip": _over_http_gzip, "copy": _by_copy, "one": _by_copy, "plain": _the_plain_way}
    tasks = [ways[name](place, round_id, port, *who) for place, who in enumerate(keys.items())]
    with ThreadPoolExecutor(1 if name == "one" else OPERATORS) as pool:
        start = time.perf_counter()
        for done in [pool.submit(task) for task in tasks]:
            done.result()
        return time.perf_counter() - start


def send_one(size: int, round_id: int, port: int, key: str) -> int:
    """One batch, blown up with blanks to so many bytes (0: as it is); returns how many it had."""
    body = _body(_batches[0].tickets, round_id)
    _post(port, "/api/operator/tickets", key, [body + b" " * (size - len(body))])()
    return max(size, len(body))


def _over_http(place: int, round_id: int, port: int, operator_id: str, key: str) -> Callable[[], None]:
    return _post(port, "/api/operator/tickets", key, [_body(batch.tickets, round_id) for batch in _of(place)])


def _over_http_gzip(place: int, round_id: int, port: int, operator_id: str, key: str) -> Callable[[], None]:
    bodies = []
    for batch in _of(place):
        # The round stands last, so that only the end is compressed anew.
        rest = batch.deflated.copy()
        bodies.append(batch.begun + rest.compress(b',"roundId":%d}' % round_id) + rest.flush())
    return _post(port, "/api/operator/tickets", key, bodies, {"Content-Encoding": "gzip"})


def _the_plain_way(place: int, round_id: int, port: int, operator_id: str, key: str) -> Callable[[], None]:
    return _post(port, f"/plain/{operator_id}/tickets", key, [_body(_plain[place], round_id)])


def _by_copy(place: int, round_id: int, port: int, operator_id: str, key: str) -> Callable[[], None]:
    connection = psycopg2.connect(_database)
    columns = ", ".join(("operator_id", *COLUMNS))
    statement = f"COPY {partition(round_id)} ({columns}) FROM STDIN"
    mine = operator_id.encode() + b"\t"
    buffers = [mine + batch.rows[:-1].replace(b"\n", b"\n" + mine) + b"\n" for batch in _of(place)]

    def copy() -> None:
        for rows in buffers:
            with connection, connection.cursor() as cursor:
                cursor.copy_expert(statement, BytesIO(rows), _COPIED_AT_ONCE)
        connection.close()

    return copy


def _of(place: int) -> list[_Batch]:
    return _batches[place * BATCHES : (place + 1) * BATCHES]


def _body(tickets: bytes, round_id: int) -> bytes:
    return b'{"roundId":%d,"tickets":%s}' % (round_id, tickets)


def _post(
    port: int, path: str, key: str, bodies: list[bytes], headers: Mapping[str, str] | None = None
) -> Callable[[], None]:
    labels = {"X-Service-Key": key, "Content-Type": "application/json", **(headers or {})}

    def post() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        for body in bodies:
            connection.request("POST", path, body, labels)
            answer = connection.getresponse()
            said = answer.read()
            if answer.status != 200:
                raise RuntimeError(f"{path}: {answer.status} {said[:500].decode(errors='replace')}")
        connection.close()

    return post
