"""The other ways to find a round's winners: bare SQL, DuckDB, our archive's reader, and NumPy in memory.

The one rule kept here: each way finds every win by its ticket's id, and says how many there are.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import duckdb
import numpy as np
from pyarrow import parquet
from sqlalchemy import text

from bench.match_round import Prepared
from models.archive_reader import open_copy
from models.session import engine, transaction
from models.tickets import COLUMNS, partition

THREADS = 2
"""As many as the worker has processes."""
_NUMBERS = COLUMNS[1:7]


def ways(prepared: Prepared) -> dict[str, Callable[[], int]]:
    """Each way by its name. Those that read nothing have everything in memory when this returns."""
    return {
        "sql": partial(_bare_sql, prepared),
        "scan": partial(_scan, prepared),
        "duckdb": partial(_duckdb, prepared),
        "archive": partial(_archive, prepared),
        "numpy": _numpy(prepared),
    }


def _hit(prepared: Prepared, join: str = " OR ") -> str:
    return join.join(f"{column} = {number}" for column, number in zip(_NUMBERS, prepared.numbers, strict=True))


def _tiers(prepared: Prepared) -> str:
    each = zip(_NUMBERS, prepared.numbers, strict=True)
    return ", ".join(f"({tier}, {column} = {number})" for tier, (column, number) in enumerate(each))


def _wins(prepared: Prepared) -> str:
    """The wins, as whoever types it at a prompt would ask for them, and knows that one pass is enough."""
    return (
        f"SELECT {prepared.round_id}, tier, operator_id, ticket_id FROM {partition(prepared.round_id)}, "
        f"LATERAL (VALUES {_tiers(prepared)}) AS tiers (tier, won) WHERE ({_hit(prepared)}) AND won"
    )


def _bare_sql(prepared: Prepared) -> int:
    with engine().begin() as connection:
        into = "INSERT INTO winners (round_id, tier, operator_id, ticket_id)"
        return int(connection.execute(text(f"{into} {_wins(prepared)}")).rowcount)


def _scan(prepared: Prepared) -> int:
    """What the statement reads, and nothing stored: PostgreSQL then works in parallel."""
    with engine().connect() as connection:
        return int(connection.execute(text(f"SELECT count(ticket_id) FROM ({_wins(prepared)})")).scalar_one())


def _duckdb(prepared: Prepared) -> int:
    tiers = [f"{column} = {number}" for column, number in zip(_NUMBERS, prepared.numbers, strict=True)]
    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {THREADS}")
        found = connection.execute(
            f"SELECT filename, ticket_id, {', '.join(tiers)} FROM read_parquet($files, filename = true) "
            f"WHERE {_hit(prepared)}",
            {"files": [str(path) for path in prepared.files]},
        ).fetchnumpy()
    return int(sum(np.count_nonzero(won) for won in list(found.values())[2:]))


def _archive(prepared: Prepared) -> int:
    with ThreadPoolExecutor(THREADS) as pool:
        return sum(pool.map(partial(_one_archive, prepared), prepared.operators))


def _one_archive(prepared: Prepared, operator_id: str) -> int:
    """As the product counts from archives: a checked copy, a group of rows at a time; then the ids of what won."""
    wins = 0
    with transaction() as session, open_copy(session, prepared.round_id, operator_id) as archive:
        rows: list[Any] = []
        for batch in archive.numbers():
            columns = zip((batch.jackpot, *batch.bonuses), prepared.numbers, strict=True)
            found = [np.flatnonzero(column == number) for column, number in columns]
            wins += sum(len(each) for each in found)
            rows.append(np.unique(np.concatenate(found)) + batch.first)
        archive.tickets_at(np.concatenate(rows).tolist())
    return wins


def _numpy(prepared: Prepared) -> Callable[[], int]:
    parts = [parquet.read_table(path, columns=list(_NUMBERS)) for path in prepared.files]
    columns = [np.concatenate([part[name].to_numpy() for part in parts]) for name in _NUMBERS]
    ids = [parquet.read_table(path, columns=["ticket_id"])["ticket_id"] for path in prepared.files]
    starts = np.cumsum([0, *(len(each) for each in ids)])

    def compare() -> int:
        wins = 0
        for column, number in zip(columns, prepared.numbers, strict=True):
            rows = np.flatnonzero(column == number)
            wins += len(rows)
            for first, end, names in zip(starts, starts[1:], ids, strict=False):
                names.take(rows[(rows >= first) & (rows < end)] - first)
        return wins

    return compare
