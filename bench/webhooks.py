"""`make bench-webhooks`: our webhooks beside a bare actor's and django-webhook's, and beside endpoints that hang.

The one rule kept here: every rate is compared with one taken seconds apart, on the same engines and to the same
receiver, and what is compared are medians of several such ratios, each round begun by another one of the three.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from rich.console import Console

from bench.receiver import receiving
from bench.web import environment
from bench.webhook_table import Delays, show_delays, show_rates
from deploy import children
from deploy.data_folder import throw_away
from deploy.engines import Engines, engines, leave_on_sigterm

REPEATS = int(os.environ.get("BENCH_REPEATS", "5"))
SECONDS = float(os.environ.get("BENCH_SECONDS", "40"))
"""How long each stream flows: longer than an endpoint may hang, so that time-outs fall into it."""
_PATIENCE = 10.0
"""Seconds after a stream's end: what has not come by then never came."""
_PAUSE = 0.5
"""Seconds between two measurements: what one leaves to be written must not burden the next."""


def main() -> None:
    """Measure and print the tables."""
    leave_on_sigterm()
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        del os.environ[name]  # Nobody's proxy is to be measured.
    # Commits survive a power cut, here as in production.
    with throw_away() as folder, engines(folder, durable=True, environ={}) as servers:
        # As in production; the sandbox would be hastier. SANDBOX is for webhooks to this machine.
        hurry = {"WEBHOOK_TIMEOUT_SECONDS": "30", "WEBHOOK_BASE_SECONDS": "30", "WEBHOOK_ATTEMPTS": "3"}
        os.environ.update(environment(servers, **hurry))
        try:
            _measure(servers, folder.path)
        except RuntimeError as problem:
            logs = sorted(folder.path.glob("*.log"))
            tails = "\n".join(f"{log.name}:\n{children.last_lines(log, 5)}" for log in logs)
            sys.exit(f"bench: {problem}\n{tails}")


def _measure(servers: Engines, folder: Path) -> None:
    # Settings are read at import.
    from bench import webhook_ours, webhook_peers
    from bench.webhook_streams import ENDPOINTS, HANG_EVERY, burst, burst_of, stream

    screen = Console(width=120)
    with (
        receiving(ENDPOINTS, folder / "receiver.log") as receiver,
        webhook_ours.coordinator(receiver.urls, os.environ, folder) as ours,
    ):
        delays: list[float] = []

        def our_burst() -> float:
            rate, found = burst(ours, receiver)
            delays.extend(found.seconds)
            return rate

        with contextlib.ExitStack() as stack:
            contestants = {"ours": our_burst}
            for name, start in webhook_peers.PEERS.items():
                try:
                    peer = stack.enter_context(start(servers, receiver.urls, os.environ, folder, webhook_ours.size()))
                except webhook_peers.NotInstalled as problem:
                    screen.print(f"left out, because it cannot be installed: {name}\n{problem}")
                else:
                    contestants[name] = partial(burst_of, peer, receiver)
            rates = _in_turn(contestants)
        bursts = Delays(delays[ENDPOINTS:])  # Without the first, which warmed everything up.
        show_rates(screen, ENDPOINTS, rates)
        steady = stream(ours, receiver, SECONDS, _PATIENCE, hanging=False)
        hanging = stream(ours, receiver, SECONDS, _PATIENCE, hanging=True)
        show_delays(screen, bursts, steady, hanging, f"{100 // HANG_EVERY} %")


def _in_turn(contestants: Mapping[str, Callable[[], float]]) -> dict[str, list[float]]:
    """What each found, round by round, after a first time that does not count."""
    order = list(contestants)
    rates: dict[str, list[float]] = {name: [] for name in order}
    for number in range(REPEATS + 1):
        for name in order[number % len(order) :] + order[: number % len(order)]:
            time.sleep(_PAUSE)
            rate = contestants[name]()
            if number:
                rates[name].append(rate)
    return rates


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
