"""What the demo shows: progress while it runs, and three tables at the end.

One rule: everything shown was asked of the coordinator's API or received by webhook; nothing is known from inside.
"""

from __future__ import annotations

import time
from collections import defaultdict
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.table import Table

from deploy.demo_receiver import Event

ROUND_EVENTS = (
    "round.opened",
    "round.sealing",
    "round.sealing_deadline",
    "round.sealed",
    "round.anchored",
    "round.escrowed",
    "round.drawn",
    "round.settled",
    "round.closed",
)
"""The events a round without exclusions sends to every operator, in their order."""

_MONEY = (
    ("tickets sold", "G", +1),
    ("jackpot pool before", "pool0", +1),
    ("reserve before", "reserve0", +1),
    ("fee kept", "feeKept", -1),
    ("operators' commission", "C", -1),
    ("winner bonus", "bonusPaid", -1),
    ("sub-prizes", "subPaid", -1),
    ("jackpot paid", "jackpotPaid", -1),
    ("jackpot pool after", "pool1", -1),
    ("reserve after", "reserve1", -1),
)


class Screen:
    """Prints steps with the seconds since the start: a line each, wherever the output goes."""

    def __init__(self) -> None:
        self.console = Console(highlight=False, soft_wrap=True)
        self._start = time.monotonic()

    def step(self, text: str) -> None:
        """Something was done."""
        self.console.print(f"[dim]{time.monotonic() - self._start:6.1f} s[/dim]  {text}")

    def show(self, table: Table) -> None:
        """A table, with a line before it."""
        self.console.print()
        self.console.print(table)


def timeline_table(timeline: list[dict[str, Any]], events: list[Event], operators: int) -> Table:
    """When the round did what, and how many operators heard of each event."""
    table = Table(title="the round", title_justify="left")
    for heading, side in (("s", "right"), ("state", "left"), ("step", "left"), ("webhooks received", "left")):
        table.add_column(heading, justify="right" if side == "right" else "left")
    opened = datetime.fromisoformat(timeline[0]["at"])
    heard = _heard(events)
    for step in timeline:
        after = (datetime.fromisoformat(step["at"]) - opened).total_seconds()
        told = [f"{name} {heard[name]}/{operators}" for name in _EVENTS_OF.get(step["trigger"], ())]
        table.add_row(f"{after:.2f}", step["state"], step["trigger"].replace("_", " "), ", ".join(told))
    return table


_EVENTS_OF = {
    "opened": ("round.opened",),
    "sales_ended": ("round.sealing",),
    "recount_agreed": ("round.sealing_deadline", "round.sealed", "round.anchored"),
    "escrow_complete": ("round.escrowed",),
    "matching_complete": ("round.drawn",),
    "tabulations_agreed": ("round.settled",),
    "close_time": ("round.closed",),
}


def _heard(events: list[Event]) -> dict[str, int]:
    by_name: dict[str, set[str]] = defaultdict(set)
    for event in events:
        by_name[event.name].add(event.operator_id)
    return defaultdict(int, {name: len(operators) for name, operators in by_name.items()})


def winners_table(winners: dict[str, Any], numbers: dict[str, int]) -> Table:
    """The numbers drawn, and how many won with each."""
    table = Table(title="the draw", title_justify="left")
    for heading in ("tier", "number", "winners", "prize each, USD"):
        table.add_column(heading, justify="right")
    share = int(winners["jackpotAmount"]) // winners["jackpotWinnerCount"] if winners["jackpotWon"] else None
    table.add_row(
        "jackpot", f"{numbers['jackpotNumber']:,}", str(winners["jackpotWinnerCount"]), usd(share) if share else "–"
    )
    for tier in winners["subPrizeTiers"]:
        prize = usd(int(tier["winners"][0]["prizeAmount"])) if tier["winners"] else "–"
        table.add_row(str(tier["tier"]), f"{numbers['bonus' + str(tier['tier'])]:,}", str(tier["count"]), prize)
    return table


def money_table(terms: dict[str, str]) -> Table:
    """What came in and where it went; the two columns add up to the same."""
    table = Table(title="the money, USD", title_justify="left", show_footer=True)
    came = sum(int(terms[name]) for _, name, side in _MONEY if side > 0)
    went = sum(int(terms[name]) for _, name, side in _MONEY if side < 0)
    table.add_column("", footer="together")
    table.add_column("in", justify="right", footer=usd(came))
    table.add_column("out", justify="right", footer=usd(went))
    for label, name, side in _MONEY:
        amount = usd(int(terms[name]))
        table.add_row(label, amount if side > 0 else "", amount if side < 0 else "")
    return table


def adds_up(terms: dict[str, str]) -> bool:
    """Whether every micro-USDC that came in went somewhere."""
    return sum(side * int(terms[name]) for _, name, side in _MONEY) == 0


def usd(micro: int) -> str:
    """micro-USDC as dollars with every digit: 1234567890 → 1,234.567890."""
    return f"{micro // 1_000_000:,}.{micro % 1_000_000:06d}"
