"""`make bench-reads`: the hot public reads beside a bare Flask view, with a short history and with a long one.

The one rule kept here: every figure is a ratio of two measurements taken seconds apart on the same server, and the
median of several such ratios.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Mapping

from rich.console import Console
from rich.table import Table

from bench.client import requests_per_second
from bench.web import prepare, serving
from deploy.engines import engines

SHORT, LONG = 100, 100_000
SPREAD = 20
"""Over how many rounds the requests for one round are spread: the latest ones, as readers do."""
SECONDS = float(os.environ.get("BENCH_SECONDS", "0.5"))
REPEATS = int(os.environ.get("BENCH_REPEATS", "21"))
COMMITS = 100
"""How many times a second somebody commits in the last measurement: what is in memory is then soon out of date."""
_Figures = Mapping[str, float]
AIMS = {"jackpot-counter": 0.8}
AIM = 0.35
AIM_LONG = 0.9


def main() -> None:
    """Measure and print the table."""
    with engines(environ={}) as servers:
        prepare(servers)
        # Settings are read at import.
        from bench.many_rounds import copy_up_to, play_one, somebody_commits

        played = play_one()
        copy_up_to(played, SHORT)
        short, _ = _measure(SHORT)
        copy_up_to(played, LONG)
        long, rates = _measure(LONG)
        with somebody_commits(COMMITS):
            busy, _ = _measure(LONG)
        _show(short, long, busy, rates)


def _paths(rounds: int) -> dict[str, list[str]]:
    latest = range(rounds - SPREAD + 1, rounds + 1)
    return {
        "bare view": ["/bare/"],
        "rounds list": ["/api/public/rounds"],
        "round": [f"/api/public/rounds/{round_id}" for round_id in latest],
        "jackpot": ["/api/public/jackpot"],
        "jackpot-counter": ["/api/public/jackpot-counter"],
        "winners": [f"/api/public/draw/{round_id}/winners" for round_id in latest],
    }


def _measure(rounds: int) -> tuple[_Figures, _Figures]:
    """``(requests/s as a share of the bare view's, requests/s)`` of each read, medians."""
    paths = _paths(rounds)
    # One process: it has a core to itself and the client and the engines the other. Of two, the kernel may give one
    # all the connections, and a ratio would say how they happened to fall.
    with serving("bench.reads_app:application", os.environ.get("WEB_CONCURRENCY", "1")) as (port, _):
        for each in paths.values():
            requests_per_second(port, each, 0.3)
        shares: dict[str, list[float]] = {name: [] for name in paths}
        rates: dict[str, list[float]] = {name: [] for name in paths}
        for _ in range(REPEATS):
            found = {name: requests_per_second(port, each, SECONDS) for name, each in paths.items()}
            for name, rate in found.items():
                rates[name].append(rate)
                shares[name].append(rate / found["bare view"])
    return _medians(shares), _medians(rates)


def _medians(measured: Mapping[str, list[float]]) -> dict[str, float]:
    return {name: statistics.median(values) for name, values in measured.items()}


def _show(short: _Figures, long: _Figures, busy: _Figures, rates: _Figures) -> None:
    table = Table(title="public reads, requests/s as a share of a bare Flask view on the same gunicorn (medians)")
    table.add_column("read")
    headings = (
        f"{SHORT} rounds",
        f"{LONG:,} rounds",
        "aim",
        f"{LONG:,} / {SHORT}",
        "aim",
        f"{COMMITS} commits/s",
        "requests/s",
    )
    for heading in headings:
        table.add_column(heading, justify="right")
    table.add_row("bare view", "1", "1", "", "", "", "1", f"{rates['bare view']:,.0f}")
    for name in list(short)[1:]:
        aims = f"≥ {AIMS.get(name, AIM)}", f"≥ {AIM_LONG}"
        shares = [f"{share:.2f}" for share in (short[name], long[name], long[name] / short[name], busy[name])]
        table.add_row(name, *shares[:2], aims[0], shares[2], aims[1], shares[3], f"{rates[name]:,.0f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
