"""`make bench-seal`: a million tickets of one operator, hashed and archived, beside hashing the same bytes.

The one rule kept here: every figure is a ratio of two measurements taken seconds apart, and the median of several such
ratios. What is measured is the product's own code in a transaction that commits.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import random
import re
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.table import Table

from bench.web import prepare
from deploy.engines import engines

TICKETS = int(os.environ.get("BENCH_TICKETS", "1_000_000"))
REPEATS = int(os.environ.get("BENCH_REPEATS", "5"))
LOOKUPS = 300
OPERATOR = "op_a"
_BATCH = 50_000
_MIB = 1 << 20
_Found = TypeVar("_Found")
AIM_LOOKUP_MS, AIM_PEAK_MIB = 15, 300


def main() -> None:
    """Measure and print the tables."""
    with engines(environ={}) as servers:
        prepare(servers)
        round_id = _load()
        before, peak = _in_a_fresh_process(_peak_of_one, round_id)
        _show_times(_measure(round_id))
        _show_reading(*_in_a_fresh_process(_reading, round_id))
        _show_memory(before, peak)


def _load() -> int:
    """A round in which one operator has all the tickets, their ids random and in no order. Returns its id."""
    from sqlalchemy import text

    from models.session import engine
    from tests.factories import RANGES, a_round, manifest, some_operators, submit

    round_id = a_round(some_operators(1))
    pick = random.Random(1)
    ids = list({f"{pick.getrandbits(64):016x}" for _ in range(TICKETS)})
    for batch in _batches(ids, _BATCH):
        submit(
            round_id,
            OPERATOR,
            [(name, *(pick.randint(1, top) for top in RANGES), pick.random() < 0.5) for name in batch],  # type: ignore[misc]
        )
    manifest(round_id, OPERATOR)
    with engine().connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM (ANALYZE) tickets, manifests"))
    return round_id


def _seal(round_id: int) -> None:
    """What a recount does but for comparing it with the manifest."""
    from models.archive_stores import archive_store
    from models.archiving import archive_tickets
    from models.session import transaction

    with transaction() as session:
        archive_tickets(session, round_id, OPERATOR, archive_store(session))


def _forget() -> None:
    """Let it not have been done, behind the guards' back."""
    from sqlalchemy import text

    from models.session import engine

    with engine().begin() as connection:
        connection.execute(text("SET LOCAL session_replication_role = replica"))
        connection.execute(
            text("TRUNCATE archive_checks, ticket_archives, ticket_chunks, archive_files, archive_pieces")
        )


def _measure(round_id: int) -> Mapping[str, list[tuple[float, float]]]:
    """Seconds of each, in turns: by the clock, and of this process's own work."""
    from models.session import transaction
    from models.tickets import stream_tickets
    from protocol.tickets import ticket_line, tickets_root

    with transaction() as session:
        lines = [ticket_line(round_id, OPERATOR, *ticket) for ticket in stream_tickets(session, round_id, OPERATOR)]
    pieces = [b"\n".join(piece) for piece in _batches(lines, 4_096)]
    seconds: dict[str, list[tuple[float, float]]] = {}
    work: dict[str, Callable[[], object]] = {
        "plain": lambda: _plain(pieces),
        "leaves": lambda: [hashlib.sha256(b"\x00" + line).digest() for line in lines],
        "root": lambda: tickets_root(lines),
        "copy": lambda: _copy_to_nowhere(round_id),
        "seal": lambda: _seal(round_id),
    }
    for _ in range(REPEATS):
        for name, each in work.items():
            _forget()
            own = time.process_time()
            passed = _seconds(each)
            seconds.setdefault(name, []).append((passed, time.process_time() - own))
    return seconds


def _plain(pieces: Sequence[bytes]) -> str:
    """One SHA-256 over all lines, joined beforehand to pieces of a size that suits it."""
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def _batches(items: list[_Found], size: int) -> list[list[_Found]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


def _copy_to_nowhere(round_id: int) -> None:
    from sqlalchemy import text

    from models.session import transaction
    from models.tickets import COLUMNS, partition

    query = (
        f"SELECT {', '.join(COLUMNS)} FROM {partition(round_id)} WHERE operator_id = '{OPERATOR}' ORDER BY ticket_id"
    )
    with transaction() as session:
        session.execute(text(f"COPY ({query}) TO '/dev/null'"))


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _in_a_fresh_process(work: Callable[[int], _Found], round_id: int) -> _Found:
    """So that nothing else of ours counts in its memory, or is remembered."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, (round_id,))


def _peak_of_one(round_id: int) -> tuple[float, float]:
    """MiB of a process before it seals, with everything imported, and at its highest."""
    import tasks.pieces
    from models.session import engine

    assert tasks.pieces  # all that a worker has
    engine().connect().close()
    before = _highest_mib()
    _seal(round_id)
    return before, _highest_mib()


def _highest_mib() -> float:
    """The most memory that this process ever had. (What getrusage says counts the process that started it.)"""
    found = re.search(r"^VmHWM:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found
    return int(found[1]) / 1024


def _reading(round_id: int) -> tuple[list[float], list[float], float, float, int]:
    """Seconds of finding a ticket and reading its chunk, each time anew; of reading as many tickets from the rows; of
    taking a checked copy, and of reading all numbers from that; and the archive's bytes.
    """
    import models.tables
    from models.archive_reader import open_archive, open_copy
    from models.session import transaction
    from models.tickets import tickets_from
    from protocol.merkle import CHUNK

    assert models.tables

    with transaction() as session:
        reader = open_archive(session, round_id, OPERATOR)
        size = reader.archive.bytes
        rows = random.Random(2).sample(range(TICKETS), LOOKUPS)
        wanted = reader.tickets_at(rows)
        start = time.perf_counter()
        with open_copy(session, round_id, OPERATOR) as copy:
            check = time.perf_counter() - start
            numbers = _seconds(lambda: [each.first for each in copy.numbers()])

    def look_up(ticket_id: str, row: int) -> None:
        with transaction() as session:
            reader = open_archive(session, round_id, OPERATOR)
            assert reader.find(ticket_id) == (row, True)
            start = row - row % CHUNK
            assert reader.chunk(start, start + CHUNK)[row - start][0] == ticket_id

    def from_rows(ticket_id: str) -> None:
        with transaction() as session:
            assert len(tickets_from(session, round_id, OPERATOR, ticket_id, CHUNK)) > 0

    lookups, others = [], []
    for name, row in zip(wanted, rows, strict=True):
        lookups.append(_seconds(partial(look_up, name, row)))
        others.append(_seconds(partial(from_rows, name)))
    return lookups, others, check, numbers, size


def _show_times(seconds: Mapping[str, list[tuple[float, float]]]) -> None:
    names = {
        "plain": "one SHA-256 over the canonical bytes",
        "leaves": "the leaves' hashes alone, lines in memory",
        "root": "leaves and root (`protocol.tickets`), lines in memory",
        "copy": "PostgreSQL reading the rows in order, to nowhere",
        "seal": "root, chunks and archive, from rows to commit",
    }
    table = Table(title=f"{TICKETS:,} tickets of one operator, medians of {REPEATS}")
    table.add_column("what")
    for heading in ("seconds", "× plain", "× leaves", "× root", "× copy", "CPU s of ours", "× root"):
        table.add_column(heading, justify="right")
    for name, label in names.items():
        passed, own = (statistics.median(column) for column in zip(*seconds[name], strict=True))
        ratios = [_times(seconds[name], seconds[beside], 0) for beside in ("plain", "leaves", "root", "copy")]
        table.add_row(label, f"{passed:.2f}", *ratios, f"{own:.2f}", _times(seconds[name], seconds["root"], 1))
    Console(width=140).print(table)


def _times(one: list[tuple[float, float]], other: list[tuple[float, float]], which: int) -> str:
    """The median of one as a multiple of the other."""
    return f"{statistics.median(a[which] / b[which] for a, b in zip(one, other, strict=True)):.2f}"


def _show_reading(lookups: list[float], others: list[float], check: float, numbers: float, size: int) -> None:
    table = Table(title=f"reading the archive ({size / _MIB:.1f} MiB) from the database")
    for heading in ("what", "measured", "aim"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    rows = {
        "find a ticket and read its chunk": (lookups, f"≤ {AIM_LOOKUP_MS} ms"),
        "as many tickets from the rows, found by the index": (others, ""),
    }
    for label, (found, aim) in rows.items():
        p50, p99 = (sorted(found)[LOOKUPS * share // 100] * 1000 for share in (50, 99))
        table.add_row(f"{label}, p50 and p99", f"{p50:.1f} and {p99:.1f} ms", aim)
    beside = statistics.median(a / b for a, b in zip(lookups, others, strict=True))
    table.add_row("the one as a multiple of the other", f"{beside:.2f}", "")
    table.add_row("take a copy and check its hash", f"{check * 1000:.0f} ms", "")
    table.add_row("read all numbers from the copy", f"{numbers * 1000:.0f} ms", "")
    Console(width=120).print(table)


def _show_memory(before: float, peak: float) -> None:
    Console(width=120).print(
        f"memory of a worker: {before:.0f} MiB before, at most {peak:.0f} MiB while it seals (aim ≤ {AIM_PEAK_MIB})"
    )


if __name__ == "__main__":
    main()
