"""The tables of `bench.round`: what each round took, and whether what is promised of a large one held.

One rule: a larger round is held against every smaller one, phase by phase and per ticket, so that what grows shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

from rich.console import Console
from rich.table import Table

from bench.round_play import PHASES, Played

LIMIT_MEMORY = 1536 << 20
AIM_WORST_CASE = 1_000_000, 5.0
"""Tickets, and within how many seconds of SEALED their worst case is to be published."""
AIM_GROWTH = 1.25
"""How many times what it cost in a smaller round a ticket may cost in a larger one: noise, and nothing else."""
_SHORT = 0.5
"""Seconds below which a phase is latency, and tells nothing of what tickets cost."""
_LATENCIES = ("escrow", "close")
"""Phases in which nobody looks at a ticket."""
_TICK = 0.001
"""Seconds: timelines are no finer."""
VERIFY = "verify: `protocol.verify` over HTTP, by anybody"


def show(rounds: Sequence[Played]) -> None:
    """Print what the rounds took: time, CPU, memory and disk, and what was promised of them."""
    screen = Console(width=150)
    names = PHASES | {"verify": VERIFY}
    _table(screen, "seconds by the clock", rounds, names, lambda played: played.seconds)
    _table(screen, "CPU seconds of the coordinator's processes", rounds, names, lambda played: played.cpu)
    own = "; ".join(f"{played.own[0]:.1f} and {played.own[1]:.1f}" for played in rounds)
    screen.print(f"Not counted, the operators' own work beforehand (s making batches, and their roots): {own}\n")
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
    _verdict(screen, "no process takes more than 1.5 GiB", most <= LIMIT_MEMORY, f"{most / 2**20:,.0f} MiB at most")
    for what, figures in (("time", [each.seconds for each in rounds]), ("CPU", [each.cpu for each in rounds])):
        worst, where = _growth(rounds, figures)
        claim = f"no phase takes more than {AIM_GROWTH} times the {what} a ticket that it takes in any smaller round"
        _verdict(screen, claim, worst <= AIM_GROWTH, where)
    wanted, seconds = AIM_WORST_CASE
    for played in rounds:
        if played.tickets == wanted:
            took = played.seconds["worst case"]
            what = f"worst case published within {seconds:g} s of SEALED at {wanted:,} tickets"
            _verdict(screen, what, took <= seconds, f"{took:.2f} s")


def _table(
    screen: Console,
    title: str,
    rounds: Sequence[Played],
    names: Mapping[str, str],
    measured: Callable[[Played], Mapping[str, float]],
) -> None:
    table = Table(title=f"{title}; × is the cost of a ticket as a multiple of that in the smallest round")
    table.add_column("phase")
    for played in rounds:
        for heading in (f"{played.tickets:,}", "tickets/s", "×")[: 2 if played is rounds[0] else 3]:
            table.add_column(heading, justify="right")
    for name, label in names.items():
        cells = []
        for played in rounds:
            if name not in measured(played):
                continue
            value = measured(played)[name]
            cells.append(f"{value:.3f}" if value < 1 else f"{value:.1f}")
            cells.append("" if name in _LATENCIES else f"{played.tickets / max(value, _TICK):,.0f}")
            if played is not rounds[0]:
                dearer = _dearer(rounds[0], measured(rounds[0])[name], played, value)
                cells.append("" if name in _LATENCIES else f"{dearer:.2f}")
        if cells:
            table.add_row(label, *cells)
    screen.print(table)


def _growth(rounds: Sequence[Played], figures: Sequence[Mapping[str, float]]) -> tuple[float, str]:
    """How much dearer a ticket became in a larger round at the most, and where, of all phases that are long enough."""
    found = [
        (_dearer(smaller, before[name], played, after[name]), f"{name}, {smaller.tickets:,} to {played.tickets:,}")
        for (smaller, before), (played, after) in combinations(zip(rounds, figures, strict=True), 2)
        for name in after
        if name not in _LATENCIES and min(before[name], after[name]) >= _SHORT
    ]
    if not found:
        return 0.0, "nothing was long enough to tell"
    worst, where = max(found)
    return worst, f"{worst:.2f} at most: {where}"


def _dearer(smaller: Played, before: float, larger: Played, after: float) -> float:
    """What a ticket costs in the larger round as a multiple of what it cost in the smaller."""
    return after / larger.tickets / (max(before, _TICK) / smaller.tickets)


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


def _verdict(screen: Console, claim: str, held: bool, measured: str) -> None:
    screen.print(f"{claim}: {'yes' if held else 'NO'} ({measured})")
