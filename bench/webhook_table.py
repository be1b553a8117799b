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

WINDOWS = 8


@dataclass(frozen=True)
class Delays:
    """How long deliveries took, seconds, in the order of their commits; infinite for those that did not come."""

    seconds: Sequence[float]

    def percentile(self, share: float) -> float:
        """The delay that this share (0 to 1) of the deliveries did not exceed."""
        return sorted(self.seconds)[max(0, math.ceil(share * len(self.seconds)) - 1)]

    def typical_p99(self) -> float:
        """The median of the p99s of equal stretches of time: one hiccup of the machine does not decide it."""
        length = len(self.seconds) // WINDOWS
        starts = range(0, length * WINDOWS, length)
        return statistics.median(Delays(self.seconds[start : start + length]).percentile(0.99) for start in starts)

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
    if "bare" in rates:
        screen.print(
            "The bare actor is counted from its first enqueue, or from its last without what came before, whichever is "
            "better for it; the others from the commit.\n"
        )


def show_delays(screen: Console, bursts: Delays, steady: Delays, hanging: Delays, share: str) -> None:
    """``share``: how many of the endpoints hang in the last, which is about the others."""
    table = Table(title="ours, from the commit to the receiver (first attempts)")
    table.add_column("news")
    for heading in ("deliveries", "never came", "p50", "p99", "aim", ""):
        table.add_column(heading, justify="right")
    p50, p99 = steady.percentile(0.5), steady.percentile(0.99)
    isolated = hanging.percentile(0.99)
    table.add_row("to all at once", *_cells(bursts))
    table.add_row("steady stream", *_cells(steady), f"p50 ≤ {_time(AIM_P50)}", _verdict(p50 <= AIM_P50))
    table.add_row("", "", "", "", "", f"p99 ≤ {_time(AIM_P99)}", _verdict(p99 <= AIM_P99))
    kind = f"the same, {share} hang: the others"
    table.add_row(kind, *_cells(hanging), f"p99 ≤ {_time(AIM_P99)}", _verdict(isolated <= AIM_P99))
    ratio = isolated / p99 if math.isfinite(isolated) else math.inf
    row = "p99, with / without hanging", "", "", "", _ratio(ratio), f"≤ {AIM_HANGING:g}"
    table.add_row(*row, _verdict(ratio <= AIM_HANGING))
    typical = hanging.typical_p99() / steady.typical_p99() if hanging.missing == 0 else math.inf
    table.add_row(f"the same, medians of {WINDOWS} stretches", "", "", "", _ratio(typical))
    screen.print(table)


def _cells(delays: Delays) -> list[str]:
    figures = [_time(delays.percentile(share)) for share in (0.5, 0.99)]
    return [f"{len(delays.seconds):,}", f"{delays.missing:,}", *figures]


def _time(value: float) -> str:
    if math.isinf(value):
        return "never"
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s"


def _ratio(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else "–"


def _verdict(met: bool) -> str:
    return "met" if met else "not met"
