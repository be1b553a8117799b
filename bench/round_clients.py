"""The operators of `bench.round`, each in a process beside others: what they sell, send, and know of it afterwards.

One rule: an operator's tickets follow from its place and their number, so that it can find its winners again without
having kept a ticket. Half of the operators number their tickets as they sell them, half give them random ids; half
compress what they send.
"""

from __future__ import annotations

import gzip
import http.client
import json
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocol.manifest import manifest_hash
from protocol.seed import nonce_commit
from protocol.tickets import ticket_line, tickets_root

BATCH = 50_000
_RANGES = (10_000_000, 1_000_000, 100_000, 10_000, 1_000, 100)
_TICKET = (
    b'{"ticketId":"%b","jackpotNumber":%d,"bonus1":%d,"bonus2":%d,"bonus3":%d,"bonus4":%d,"bonus5":%d,"isQuickPick":%b}'
)
_ODD = 0x9E3779B97F4A7C15
"""Times this, modulo 2⁶⁴, different numbers stay different and look random."""
_SECONDS = 120


@dataclass(frozen=True)
class Seller:
    """One operator in one round. `folder` keeps what it is going to send."""

    place: int
    operator_id: str
    api_key: str
    port: int
    round_id: int
    tickets: int
    folder: Path

    @property
    def nonce(self) -> bytes:
        """What it commits to in its manifest, and reveals once the round is sealed."""
        return sha256(f"{self.place} {self.round_id}".encode()).digest()

    @property
    def compresses(self) -> bool:
        """Whether it sends gzip."""
        return self.place // 2 % 2 == 1


def begin() -> None:
    """A client process starts: Ctrl-C is for the one that started it, which then stops all of them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def prepare(seller: Seller) -> tuple[float, float]:
    """Make every byte to be sent, the manifest with the tickets' root too; seconds for the batches and for the root."""
    start = time.perf_counter()
    ids, numbers = _ids(seller), _numbers(seller)
    seller.folder.mkdir()
    for place, batch in enumerate(_batches(np.arange(seller.tickets))):
        tickets = b",".join(_TICKET % ticket for ticket in _tickets(ids, numbers, batch, (b"true", b"false")))
        body = b'{"roundId":%d,"tickets":[%b]}' % (seller.round_id, tickets)
        (seller.folder / f"{place:06}").write_bytes(gzip.compress(body, 1) if seller.compresses else body)
    made = time.perf_counter()
    about = seller.round_id, seller.operator_id
    top = tickets_root(
        ticket_line(*about, ticket_id.decode(), *rest)
        for batch in _batches(np.argsort(ids))  # They are all of one length: in the order of their bytes, too.
        for ticket_id, *rest in _tickets(ids, numbers, batch, (True, False))
    )
    written = json.dumps(
        {
            "roundId": seller.round_id,
            "operatorId": seller.operator_id,
            "ticketCount": seller.tickets,
            "ticketsRoot": top,
            "nonceCommit": nonce_commit(seller.round_id, seller.operator_id, seller.nonce),
        }
    )
    manifest = {
        "roundId": seller.round_id,
        "manifestJson": written,
        "manifestHash": manifest_hash(written),
        "ticketCount": seller.tickets,
    }
    (seller.folder / "manifest").write_text(json.dumps(manifest))
    return made - start, time.perf_counter() - made


def submit(seller: Seller) -> None:
    """Send the batches, one after the other, and then the manifest; what was sent is deleted."""
    connection = http.client.HTTPConnection("127.0.0.1", seller.port, timeout=_SECONDS)
    packed = {"Content-Encoding": "gzip"} if seller.compresses else {}
    for file in sorted(seller.folder.iterdir()):
        last = file.name == "manifest"
        labels = {"X-Service-Key": seller.api_key, "Content-Type": "application/json", **({} if last else packed)}
        path = f"/api/operator/{'manifest' if last else 'tickets'}"
        connection.request("POST", path, file.read_bytes(), labels)
        answer = connection.getresponse()
        said = answer.read()
        if answer.status not in (200, 201):
            raise RuntimeError(f"{path}: {answer.status} {said[:500].decode(errors='replace')}")
        file.unlink()
    connection.close()
    shutil.rmtree(seller.folder)


def wins(seller: Seller, drawn: tuple[int, ...]) -> list[int]:
    """How many of its tickets won in each tier 0 to 5, by its own books."""
    return [int((column == number).sum()) for column, number in zip(_numbers(seller), drawn, strict=True)]


def _ids(seller: Seller) -> NDArray[np.uint64]:
    first = seller.place * seller.tickets
    sold = np.arange(first, first + seller.tickets, dtype=np.uint64)
    return sold * np.uint64(_ODD) if seller.place % 2 else sold


def _numbers(seller: Seller) -> list[NDArray[np.int64]]:
    chance = np.random.default_rng([seller.place, seller.tickets])
    return [chance.integers(1, top, seller.tickets, endpoint=True) for top in _RANGES]


def _batches(order: NDArray[Any]) -> Iterator[NDArray[Any]]:
    return (order[start : start + BATCH] for start in range(0, len(order), BATCH))


def _tickets(
    ids: NDArray[np.uint64], numbers: list[NDArray[np.int64]], batch: NDArray[Any], words: tuple[Any, Any]
) -> Iterator[tuple[Any, ...]]:
    """Id, six numbers and whether it is a quick pick, in `words`, of the tickets in these places."""
    named = (b"%016x" % each for each in ids[batch].tolist())
    quick = (words[each % 2] for each in batch.tolist())
    return zip(named, *(column[batch].tolist() for column in numbers), quick, strict=True)
