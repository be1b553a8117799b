"""What a webhook measurement found, as a person reads it.

The one rule kept here: beside every figure that has an aim stands the aim, and whether it was met.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

NAMES = {"ours": "ours", "bare": "bare Dramatiq actor", "django": "django-webhook on Celery"}
AIMS = {"bare": 0.5, "django": 2.0}
"""Our deliveries a second as a multiple of theirs."""
AIM_P50, AIM_P99, AIM_HANGING = 0.1, 1.0, 2.0
"""Seconds, seconds, and how many times the p99 without hanging endpoints."""


@dataclass(frozen=True)
class Delays:
    """How long deliveries took, seconds; infinite for those that did not come."""

    seconds: Sequence[float]

    def percentile(self, share: float) -> float:
        """The delay that this share (0 to 1) of the deliveries did not exceed."""
        return sorted(self.seconds)[max(0, math.ceil(share * len(self.seconds)) - 1)]

    @property
    def missing(self) -> int:
        """How many did not come."""
        return sum(map(math.isinf, self.seconds))


def show_rates(screen: Console, deliveries: int, rates: Mapping[str, Sequence[float]]) -> None:
    """``rates``: deliveries a second of each contestant, round by round."""
    rounds = len(rates["ours"])
    table = Table(title=f"one event to {deliveries:,} endpoints, deliveries/s (medians of {rounds} alternating rounds)")
    table.add_column("sender")
    for heading in ("deliveries/s", "from", "to", "ours / this", "aim", ""):
        table.add_column(heading, justify="right")
    for name, values in rates.items():
        cells = [f"{value:,.0f}" for value in (statistics.median(values), min(values), max(values))]
        if aim := AIMS.get(name):
            ratio = statistics.median(our / their for our, their in zip(rates["ours"], values, strict=True))
            cells += [f"{ratio:.2f}", f"≥ {aim}", _verdict(ratio >= aim)]
        table.add_row(NAMES[name], *cells)
    screen.print(table)


def show_delays(screen: Console, bursts: Delays, steady: Delays, hanging: Delays, kind: str) -> None:
    """``kind`` says of which endpoints and of how many of them the last is about."""
    table = Table(title="ours, from commit to receiver")
    table.add_column("news")
    for heading in ("deliveries", "did not come", "p50", "p99", "aims", ""):
        table.add_column(heading, justify="right")
    p50, p99 = steady.percentile(0.5), steady.percentile(0.99)
    isolated = hanging.percentile(0.99)
    table.add_row("all endpoints at once", *_cells(bursts))
    aims = f"p50 ≤ {_seconds(AIM_P50)}, p99 ≤ {_seconds(AIM_P99)}"
    table.add_row("a steady stream", *_cells(steady), aims, _verdict(p50 <= AIM_P50 and p99 <= AIM_P99))
    aims = f"p99 ≤ {_seconds(AIM_P99)}, ≤ {AIM_HANGING:g} × the stream's"
    met = isolated <= AIM_P99 and isolated <= AIM_HANGING * p99
    table.add_row(f"the same, {kind}", *_cells(hanging), aims, _verdict(met))
    screen.print(table)
    screen.print(f"healthy endpoints' p99 while others hang is {isolated / p99:.2f} times the stream's")


def _cells(delays: Delays) -> list[str]:
    figures = [_seconds(delays.percentile(share)) for share in (0.5, 0.99)]
    return [f"{len(delays.seconds):,}", f"{delays.missing:,}", *figures]


def _seconds(value: float) -> str:
    if math.isinf(value):
        return "never"
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s"


def _verdict(met: bool) -> str:
    return "met" if met else "not met"
