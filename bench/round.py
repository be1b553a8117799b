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
from multiprocessing import get_context

from bench import round_clients as clients
from bench.round_books import check
from bench.round_memory import Watch
from bench.round_play import Played, Stage, play
from bench.round_table import show
from bench.web import UNLIMITED
from deploy import children
from deploy.coordinator import coordinator
from deploy.data_folder import throw_away
from deploy.demo_desk import Desk
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
_BYTES_A_TICKET = 1_000
"""On disk, generously: the row, its index, the log of both, the archive twice, and what is to be sent."""


def main() -> int:
    """Play the rounds and print the tables."""
    leave_on_sigterm()
    os.environ.update(NO_PROXY="127.0.0.1", no_proxy="127.0.0.1")
    screen = Screen()
    sizes = [*(tickets for tickets in SMALLER if tickets < TICKETS), TICKETS]
    environ = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    try:
        with throw_away() as folder:
            if shutil.disk_usage(folder.path).free < sum(sizes) * _BYTES_A_TICKET:
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
                stage = Stage(running, Desk(running.base_url, key), keys, pool, watch, screen, folder.path)
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
    show(rounds)
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


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
