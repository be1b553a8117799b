"""`make bench-ingest`: tickets over HTTP into one web process, beside bare COPY and beside the plain way.

The one rule kept here: every rate is compared with one taken seconds apart, on the same engines and into a partition as
empty as the other's, and what is compared are medians of several such ratios, each repetition begun by another one.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console
from rich.table import Table
from sqlalchemy import text

from bench import ingest_clients as clients
from bench.web import prepare, serving
from deploy.data_folder import throw_away
from deploy.engines import engines, leave_on_sigterm

REPEATS = int(os.environ.get("BENCH_REPEATS", "7"))
SECONDS = float(os.environ.get("BENCH_SECONDS", "90"))
"""On a busy machine no round begins after so long; there are three at the least."""
FEWEST = 3
NAMES = {
    "json": "ours, plain JSON",
    "gzip": "ours, gzip",
    "copy": f"bare COPY, {clients.OPERATORS} connections",
    "one": "bare COPY, one connection",
    "plain": "marshmallow and ORM",
}
AIMS = {"copy": 0.5, "plain": 10.0}
"""Our tickets a second as a multiple of theirs."""
AIM_MEMORY = 8.0
"""How many times its body a request may take."""


def main() -> None:
    """Measure and print the table."""
    leave_on_sigterm()
    # Commits survive a power cut, here as in production.
    with throw_away() as folder, engines(folder, durable=True, environ={}) as servers:
        prepare(servers)
        # A process of their own: what the clients do is not to wait for what we do here.
        with ProcessPoolExecutor(1, get_context("spawn"), clients.prepare, (servers.database_url,)) as pool:
            _measure(pool)


def _measure(pool: ProcessPoolExecutor) -> None:
    # Settings are read at import.
    from app.resources.tickets import LARGEST_BODY
    from models.credentials import issue_api_key
    from models.session import transaction
    from tests.factories import a_round, some_operators

    operators = some_operators(clients.OPERATORS)
    with transaction() as session:
        keys = {operator_id: issue_api_key(session, operator_id) for operator_id in operators}
    # One process, whatever the machine: it is what is measured.
    with serving("bench.ingest_app:application") as (port, web):
        idle, key = web.memory_info().rss, next(iter(keys.values()))

        def most(size: int, round_id: int) -> tuple[int, float]:
            """A full batch's bytes, and the most that the web process grew by, as a multiple of these."""
            Path(f"/proc/{web.pid}/clear_refs").write_text("5")  # The peak is reset to what is in use now.
            sent = pool.submit(clients.send_one, size, round_id, port, key).result()
            status = Path(f"/proc/{web.pid}/status").read_text().splitlines()
            [peak] = [int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM")]
            return sent, (peak - idle) / sent

        memory = {
            "as most are sent": most(0, round_id := a_round(operators)),
            "the same again": most(0, round_id),
            "blown up with blanks": most(LARGEST_BODY, a_round(operators)),
        }
        rates: dict[str, list[float]] = {name: [] for name in NAMES}
        order, deadline = list(NAMES), time.monotonic() + SECONDS
        for number in range(REPEATS + 1):
            if number > FEWEST and time.monotonic() > deadline:
                break
            first = number % len(order)
            for name in order[first:] + order[:first]:
                rate = _rate(pool, name, port, keys)
                if number:  # The first time warms everything up.
                    rates[name].append(rate)
    _show(rates, memory)


def _rate(pool: ProcessPoolExecutor, name: str, port: int, keys: Mapping[str, str]) -> float:
    """Tickets a second, into a new round's partition that is dropped again."""
    from models.session import engine
    from tests.factories import a_round

    round_id = a_round(list(keys))
    with engine().connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        # What one leaves to be written must not burden the next.
        connection.execute(text("CHECKPOINT"))
        seconds = pool.submit(clients.send, name, round_id, port, keys).result()
        stored = connection.execute(text(f"SELECT count(*) FROM tickets_r{round_id}")).scalar_one()
        connection.execute(text(f"DROP TABLE tickets_r{round_id}"))
    if stored != clients.tickets_of(name):
        raise RuntimeError(f"{NAMES[name]}: {stored} tickets stored instead of {clients.tickets_of(name)}")
    return float(stored / seconds)


def _show(rates: Mapping[str, Sequence[float]], memory: Mapping[str, tuple[int, float]]) -> None:
    screen = Console(width=120)
    rounds = len(rates["json"])
    title = f"tickets/s into one web process, {clients.BATCH:,} a batch (medians of {rounds} alternating rounds)"
    table = Table(title=title)
    table.add_column("way")
    for heading in ("tickets/s", "from", "to", "ours / this", "aim", ""):
        table.add_column(heading, justify="right")
    for name, values in rates.items():
        cells = [f"{value:,.0f}" for value in (statistics.median(values), min(values), max(values))]
        if name != "json":
            ratio = statistics.median(our / their for our, their in zip(rates["json"], values, strict=True))
            cells.append(f"{ratio:.2f}")
            if aim := AIMS.get(name):
                cells += [f"≥ {aim:g}", _verdict(ratio >= aim)]
        table.add_row(NAMES[name], *cells)
    screen.print(table)
    screen.print(f"The last gets {clients.PLAIN_BATCH:,} a batch: it is slow, and no faster with more.\n")
    table = Table(title="growth of the web process over one full batch")
    table.add_column("batch")
    for heading in ("body", "peak / body", "aim", ""):
        table.add_column(heading, justify="right")
    for name, (sent, ratio) in memory.items():
        table.add_row(
            name, f"{sent / 2**20:.1f} MiB", f"{ratio:.1f}", f"≤ {AIM_MEMORY:g}", _verdict(ratio <= AIM_MEMORY)
        )
    screen.print(table)


def _verdict(met: bool) -> str:
    return "met" if met else "not met"


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
