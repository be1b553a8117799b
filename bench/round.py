"""`make bench-round`: whole rounds of 20 operators, each ten times the one before, against the real thing.

One rule: it is a measurement only of what is right. Of every round the books must balance, both tabulations and the
operators' own books agree on the winners, and the published verifier find nothing; or there is no table.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import get_context

from rich.console import Console
from rich.table import Table

from bench import round_clients as clients
from bench.round_books import check
from bench.round_memory import Watch
from bench.round_play import PHASES, Played, Stage, play
from bench.web import UNLIMITED
from deploy import children
from deploy.coordinator import coordinator
from deploy.data_folder import throw_away
from deploy.demo_screen import Screen
from deploy.engines import leave_on_sigterm
from deploy.failure import Failure
from deploy.procfile import TOP
from deploy.sandbox import admin_key, operator

TICKETS = int(os.environ.get("TICKETS", "10_000_000"))
SMALLER = (100_000, 1_000_000)
"""The rounds that the largest is compared with."""
WARM_UP = 20_000
OPERATORS = 20
CLIENTS = 4
"""Processes that the operators share; as many operators submit at once."""
LIMIT_MEMORY = 1536 << 20
AIM_WORST_CASE = 1_000_000, 5.0
"""Tickets, and within how many seconds of SEALED their worst case is to be published."""
AIM_GROWTH = 1.25
"""How many times as much a ticket may cost in a larger round: noise, and nothing else."""
_BYTES_A_TICKET = 700
"""On disk at most: the row, its index, the log of both, the archive twice, and what is to be sent."""
_SHORT = 0.5
"""Seconds below which a phase is latency, and no cost of tickets."""
VERIFY = "verify: `protocol.verify` over HTTP, by anybody"


def main() -> int:
    """Play the rounds and print the tables."""
    leave_on_sigterm()
    os.environ.update(NO_PROXY="127.0.0.1", no_proxy="127.0.0.1")
    screen = Screen()
    sizes = [*(tickets for tickets in SMALLER if tickets < TICKETS), TICKETS]
    environ = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    try:
        with throw_away() as folder:
            if shutil.disk_usage(folder.path).free < 2 * sum(sizes) * _BYTES_A_TICKET:
                raise Failure(f"{folder.path} has no room for {TICKETS:,} tickets; TICKETS=n takes fewer")
            logs = folder.path / "logs"
            screen.step("starting PostgreSQL, Redis, web, worker and scheduler")
            with (
                # Commits survive a power cut, here as in production.
                coordinator(
                    folder, durable=True, log_dir=logs, environ=environ | UNLIMITED | {"LOG_LEVEL": "warning"}
                ) as running,
                # Left, in whatever way, it ends its processes.
                get_context("spawn").Pool(CLIENTS, clients.begin) as pool,
            ):
                key = admin_key(running, "bench")
                operators = [operator(running.base_url, key, f"Operator {place}") for place in range(OPERATORS)]
                keys = [(each["operatorId"], each["apiKey"]) for each in operators]
                watch = Watch(running)
                stage = Stage(running, {"X-Service-Admin-Key": key}, keys, pool, watch, screen, folder.path)
                try:
                    with watch.watching():
                        play(stage, WARM_UP)
                        rounds = [_whole(stage, tickets) for tickets in sizes]
                except (Failure, RuntimeError) as problem:
                    tails = (f"{log.name}:\n{children.last_lines(log, 5)}" for log in sorted(logs.glob("*.log")))
                    raise Failure("\n".join((str(problem), *tails))) from None
    except (Failure, OSError) as problem:
        print(f"bench: {problem}", file=sys.stderr)
        return 1
    _show(rounds)
    return 0


def _whole(stage: Stage, tickets: int) -> Played:
    """A round from its opening until somebody from outside has verified it."""
    start = time.monotonic()
    played = play(stage, tickets)
    seconds = time.monotonic() - start
    found = check(stage, played)
    stage.screen.step(f"{tickets:,} tickets: CLOSED after {seconds:.0f} s, {found}")
    start = time.monotonic()
    verifier = [sys.executable, "-m", "protocol.verify", stage.running.base_url, "--round", str(played.round_id)]
    with stage.screen.waiting() as waiting:
        waiting("it is verified from the outside")
        done = subprocess.run(verifier, cwd=TOP, capture_output=True, text=True, check=False)
    if not done.stdout.endswith("\nverified\n"):
        raise Failure(f"round {played.round_id} cannot be verified: {done.stdout}{done.stderr}")
    played.seconds["verify"] = time.monotonic() - start
    return played


def _show(rounds: Sequence[Played]) -> None:
    screen = Console(width=150)
    names = PHASES | {"verify": VERIFY}
    grew = _table(screen, "seconds by the clock", rounds, names, lambda played: played.seconds, _SHORT)
    _table(screen, "CPU seconds of the coordinator's processes", rounds, names, lambda played: played.cpu, _SHORT)
    own = "; ".join(f"{played.tickets:,}: {played.own[0]:.1f} and {played.own[1]:.1f}" for played in rounds)
    screen.print(f"The operators' own work beforehand, s of making batches and of their roots, not counted: {own}\n")
    _amounts(
        screen,
        "memory at most, MiB (resident by the kernel's VmHWM; PostgreSQL's largest process without what all share)",
        rounds,
        lambda played: played.memory,
        lambda value, _: f"{value / 2**20:,.0f}",
    )
    _amounts(
        screen,
        "on disk, bytes a ticket",
        rounds,
        lambda played: played.disk,
        lambda value, tickets: f"{value / tickets:,.1f}",
    )
    most = max(value for played in rounds for value in played.memory.values())
    verdict(screen, "no process takes more than 1.5 GiB", most <= LIMIT_MEMORY, f"{most / 2**20:,.0f} MiB at most")
    verdict(screen, f"no phase costs more than {AIM_GROWTH} times as much a ticket as in the smallest round", *grew)
    wanted, seconds = AIM_WORST_CASE
    for played in rounds:
        if played.tickets == wanted:
            took = played.seconds["worst case"]
            what = f"worst case published within {seconds:g} s of SEALED at {wanted:,} tickets"
            verdict(screen, what, took <= seconds, f"{took:.2f} s")


def _table(
    screen: Console,
    title: str,
    rounds: Sequence[Played],
    names: Mapping[str, str],
    measured: Callable[[Played], Mapping[str, float]],
    short: float,
) -> tuple[bool, str]:
    """Show a phase a row; returns whether what a ticket costs did not grow, and where it did the most."""
    table = Table(title=f"{title}; × is the cost of a ticket as a multiple of that in the smallest round")
    table.add_column("phase")
    for played in rounds:
        for heading in (f"{played.tickets:,}", "tickets/s", "×")[: 2 if played is rounds[0] else 3]:
            table.add_column(heading, justify="right")
    smallest, worst, where = rounds[0], 0.0, ""
    for name, label in names.items():
        cells = []
        for played in rounds:
            if name not in measured(played):
                continue
            value = measured(played)[name]
            cells += [f"{value:.3f}" if value < 1 else f"{value:.1f}", f"{played.tickets / max(value, 0.001):,.0f}"]
            if played is not smallest:
                ratio = value / played.tickets / max(measured(smallest)[name], 0.001) * smallest.tickets
                cells.append(f"{ratio:.2f}")
                if ratio > worst and value > short:
                    worst, where = ratio, f"{worst_of(name, played)}: {ratio:.2f}"
        if cells:
            table.add_row(label, *cells)
    screen.print(table)
    return worst <= AIM_GROWTH, where or "nothing was long enough to tell"


def worst_of(name: str, played: Played) -> str:
    """A phase of a round, named."""
    return f"{name} of {played.tickets:,}"


def _amounts(
    screen: Console,
    title: str,
    rounds: Sequence[Played],
    measured: Callable[[Played], Mapping[str, int]],
    written: Callable[[int, int], str],
) -> None:
    table = Table(title=title)
    table.add_column("what")
    for played in rounds:
        table.add_column(f"{played.tickets:,}", justify="right")
    for name in sorted({name for played in rounds for name in measured(played)}):
        table.add_row(name, *(written(measured(played).get(name, 0), played.tickets) for played in rounds))
    screen.print(table)


def verdict(screen: Console, claim: str, held: bool, measured: str) -> None:
    """Say whether something held."""
    screen.print(f"{claim}: {'yes' if held else 'NO'} ({measured})")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
