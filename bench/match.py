"""`make bench-match`: from a round's seed to its stored winners, beside bare SQL, DuckDB and NumPy.

The one rule kept here: every time is compared with one taken seconds apart, on the same engines and the same tickets;
all ways find the same number of wins; and what is compared are medians of several such ratios, each repetition begun by
another way.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.web import prepare
from deploy import children
from deploy.data_folder import throw_away
from deploy.engines import engines, leave_on_sigterm

TICKETS = int(os.environ.get("TICKETS", "10_000_000"))
REPEATS = int(os.environ.get("BENCH_REPEATS", "5"))
SECONDS = 90.0
"""No repetition begins later: ten million tickets take some two minutes to make, and all of it is to take four."""
NAMES = {
    "ours": "ours: shards in 2 worker processes, stored and counted",
    "sql": "the bare SQL statement, stored and counted",
    "scan": "the bare SQL statement without storing",
    "duckdb": "DuckDB over the Parquet files",
    "archive": "our archive's reader and NumPy",
    "numpy": "NumPy, numbers in memory",
}
STORING = ("ours", "sql")
AIMS = {("sql", "ours"): 1.0, ("scan", "archive"): 3.0}
"""The first's time as a multiple of the second's."""
_BYTES_A_TICKET = 400
"""On disk: the row, its index, the log of both, and the archive twice."""


def main() -> None:
    """Measure and print the table."""
    leave_on_sigterm()
    # Commits survive a power cut, here as in production.
    with throw_away() as folder, engines(folder, durable=True, environ={}) as servers:
        if shutil.disk_usage(folder.path).free < 2 * TICKETS * _BYTES_A_TICKET:
            sys.exit(f"bench: {folder.path} has no room for {TICKETS:,} tickets; TICKETS=n takes fewer")
        prepare(servers)
        try:
            _measure(folder.path)
        except RuntimeError as problem:
            sys.exit(f"bench: {problem}\n{children.last_lines(folder.path / 'worker.log', 5)}")


def _measure(folder: Path) -> None:
    # Settings are read at import.
    from bench import match_round
    from bench.match_ways import ways

    prepared = match_round.prepare(TICKETS, folder)
    with match_round.working(os.environ, folder):
        contestants = {"ours": lambda: match_round.ours(prepared.round_id), **ways(prepared)}
        times: dict[str, list[float]] = {name: [] for name in NAMES}
        found: set[int] = set()

        def timed(name: str, way: Callable[[], int | None]) -> float:
            match_round.forget(prepared.round_id)
            clock = time.perf_counter()
            wins = way()
            if name in STORING:
                wins = match_round.counted(prepared.round_id)
            seconds = time.perf_counter() - clock
            found.add(wins or 0)
            return seconds

        order = list(NAMES)
        begun = time.monotonic()
        for number in range(REPEATS + 1):
            if number > 1 and time.monotonic() - begun > SECONDS:
                break
            for name in order[number % len(order) :] + order[: number % len(order)]:
                seconds = timed(name, contestants[name])
                if number:  # The first time warms everything up.
                    times[name].append(seconds)
    if len(found) != 1:
        raise RuntimeError(f"they do not find the same: {sorted(found)}")
    _show(times, found.pop())


def _show(times: Mapping[str, Sequence[float]], wins: int) -> None:
    screen = Console(width=130)
    table = Table(
        title=f"{TICKETS:,} tickets, {wins:,} wins: seconds (medians of {len(times['ours'])} alternating rounds)",
    )
    table.add_column("way")
    for heading in ("s", "from", "to", "this / ours"):
        table.add_column(heading, justify="right")
    for name, values in times.items():
        cells = [f"{value:.2f}" for value in (statistics.median(values), min(values), max(values))]
        table.add_row(NAMES[name], *cells, f"{_ratio(times, name, 'ours'):.2f}" if name != "ours" else "")
    screen.print(table)
    for (slow, fast), aim in AIMS.items():
        ratio = _ratio(times, slow, fast)
        screen.print(f"{slow} / {fast}: {ratio:.2f}, aim ≥ {aim:g}: {'met' if ratio >= aim else 'not met'}")


def _ratio(times: Mapping[str, Sequence[float]], one: str, other: str) -> float:
    return statistics.median(ours / theirs for ours, theirs in zip(times[one], times[other], strict=True))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
