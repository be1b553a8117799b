"""A round of any size that waits for its draw, with its archive, and our own way from there to its winners.

The one rule kept here: the partition, its constraints and the tables of winners and of pieces of work are the product's
own. What cannot be had in seconds is put into place behind the guards (as a restore does): tickets that nobody sent, a
sealing that nobody waited for; and only on throw-away engines of our own.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple, cast

from sqlalchemy import text

from deploy.procfile import TOP, read_procfile
from deploy.supervisor import Supervisor
from models import tables
from models.archive_stores import archive_store
from models.archive_writer import COPIED, ArchiveWriter
from models.archives import TicketArchive
from models.draws import win_counts
from models.session import engine, transaction
from models.tickets import COLUMNS, partition
from models.work import Kind, remaining
from protocol.numbers import Numbers, draw_numbers
from tasks.drawing import plan_matching
from tests.factories import RANGES, a_round, manifest, some_operators

__all__ = ["OPERATORS", "Prepared", "counted", "forget", "ours", "prepare", "tables", "working"]

OPERATORS = 20
_BATCH = 2_000
"""Tickets that one operator sends in a row."""
_STOP_SECONDS = 5.0
_LOOK_EVERY = 0.02
"""Seconds. Looking takes a few milliseconds of a core, and those who match need all there are."""
_PATIENCE = 120.0


class Prepared(NamedTuple):
    """``files`` are the archives; they are also kept in the database, where the product reads them."""

    round_id: int
    operators: list[str]
    numbers: Numbers
    files: list[Path]


def prepare(tickets: int, folder: Path) -> Prepared:
    """Make a round of so many tickets as it is after sealing, escrow and the drawing of its numbers."""
    operators = some_operators(OPERATORS)
    round_id = a_round(operators)
    halves = [(0, tickets // 2), (tickets // 2, tickets)]
    with ThreadPoolExecutor(len(halves)) as pool:
        list(pool.map(partial(_fill, round_id, operators), halves))
    for operator_id in operators:
        manifest(round_id, operator_id)
    numbers = draw_numbers(hashlib.sha256(b"bench").hexdigest(), RANGES)
    with engine().begin() as connection:
        connection.execute(text("SET LOCAL session_replication_role = replica"))
        connection.execute(text("UPDATE participations SET escrow_usdc = 0, escrowed_at = now()"))
        connection.execute(
            text(
                "INSERT INTO draws (round_id, draw_seed, jackpot_number, bonus1, bonus2, bonus3, bonus4, bonus5) "
                "VALUES (:round, 'bench', :n0, :n1, :n2, :n3, :n4, :n5)"
            ),
            {"round": round_id} | {f"n{tier}": number for tier, number in enumerate(numbers)},
        )
    with engine().connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f"VACUUM (ANALYZE) {partition(round_id)}"))
    with ThreadPoolExecutor(len(halves)) as pool:
        files = list(pool.map(partial(_archive, round_id, folder), operators))
    return Prepared(round_id, operators, numbers, files)


def _fill(round_id: int, operators: list[str], places: tuple[int, int]) -> None:
    """Operators take turns, as they do when all of them send at once."""
    numbers = ", ".join(f"1 + floor(random() * {top})::int" for top in RANGES)
    with engine().begin() as connection:
        connection.execute(text("SELECT setseed(:seed)"), {"seed": places[0] / places[1]})
        connection.execute(
            text(
                f"INSERT INTO {partition(round_id)} (operator_id, {', '.join(COLUMNS)}) "
                f"SELECT (CAST(:operators AS text[]))[1 + place / {_BATCH} % {len(operators)}], "
                f"'ticket-' || lpad(place::text, 10, '0'), {numbers}, place % 2 = 0 "
                "FROM generate_series(:first, :last) AS place"
            ),
            {"operators": operators, "first": places[0], "last": places[1] - 1},
        )


def _archive(round_id: int, folder: Path, operator_id: str) -> Path:
    """Archive an operator's tickets as sealing does, but for the hashing of every ticket."""
    path = folder / f"{operator_id}.parquet"
    with transaction() as session, path.open("w+b") as file:
        columns = ", ".join(COPIED).replace("is_quick_pick", "is_quick_pick::text")
        cursor, rows = cast(Any, session.connection().connection).cursor(), BytesIO()
        query = f"SELECT {columns} FROM {partition(round_id)} WHERE operator_id = %s ORDER BY ticket_id"
        cursor.copy_expert(f"COPY ({cursor.mogrify(query, [operator_id]).decode()}) TO STDOUT", rows)
        with ArchiveWriter(file) as writer:
            writer.add(rows.getvalue())
        size, digest = file.seek(0, 2), hashlib.file_digest(path.open("rb"), "sha256").hexdigest()
        store, key = archive_store(session), f"r{round_id}/{operator_id}/{digest}.parquet"
        store.put(key, file)
        count = rows.getvalue().count(b"\n")
        session.add(
            TicketArchive(
                round_id=round_id,
                operator_id=operator_id,
                sha256=digest,
                bytes=size,
                tickets=count,
                store=store.name,
                key=key,
            )
        )
    return path


@contextlib.contextmanager
def working(env: Mapping[str, str], logs: Path) -> Iterator[None]:
    """The Procfile's worker, with its processes and threads, while the context lasts."""
    command = read_procfile((TOP / "Procfile").read_text())["worker"]
    supervisor = Supervisor(f"worker: {command}\n", env, logs)
    try:
        supervisor.start()
        yield
    finally:
        supervisor.stop(_STOP_SECONDS)
        engine().dispose()


def ours(round_id: int) -> None:
    """Plan the matching as the step does that fixes the seed, and wait until workers have done all of it.

    :raises RuntimeError: they have not within two minutes.
    """
    with transaction() as session:
        plan_matching(session, round_id)
    deadline = time.monotonic() + _PATIENCE
    while True:
        with transaction() as session:
            if not remaining(session, round_id, Kind.MATCH):
                return
        if time.monotonic() > deadline:
            raise RuntimeError("the workers do not match")
        time.sleep(_LOOK_EVERY)


def counted(round_id: int) -> int:
    """How many wins are stored, counted as the draw counts them."""
    with transaction() as session:
        return sum(sum(tiers) for tiers in win_counts(session, round_id).values())


def forget(round_id: int) -> None:
    """Be as before the matching."""
    with engine().connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("TRUNCATE winners"))
        connection.execute(text("DELETE FROM round_pieces WHERE kind = 'match'"))
        # What one way leaves to be written must not burden the next.
        connection.execute(text("CHECKPOINT"))
