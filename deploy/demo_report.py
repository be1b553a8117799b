"""The demo's tables: what the round did and when, what was drawn, where the money went.

One rule: they show what the coordinator's API and the webhooks said, and decide nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from rich import box
from rich.table import Table

from deploy.demo_receiver import Event
from deploy.demo_screen import usd
from player.coordinator import Winners
from protocol.lifecycle import TRANSITIONS

_WEBHOOKS = {trigger.value: step.webhooks for (_, trigger), step in TRANSITIONS.items()}

_MONEY = (
    ("tickets sold", "G", "in"),
    ("jackpot pool before", "pool0", "in"),
    ("reserve before", "reserve0", "in"),
    ("service fee", "feeKept", "out"),
    ("operators' commission", "C", "out"),
    ("winner bonus", "bonusPaid", "out"),
    ("sub-prizes", "subPaid", "out"),
    ("jackpot", "jackpotPaid", "out"),
    ("jackpot pool after", "pool1", "out"),
    ("reserve after", "reserve1", "out"),
)


@dataclass(frozen=True)
class Account:
    """An operator after the round: tickets sold, winners among them, balance in micro-USDC."""

    name: str
    tickets: int
    winners: int
    balance: int


def timeline_table(timeline: Sequence[Mapping[str, str]], events: Iterable[Event], operators: int) -> Table:
    """Each step of the round, and how many of the operators heard of it by webhook, the last of them how late."""
    table = _table("The round", left=("time (UTC)",), right=("s",))
    table.add_column("state")
    table.add_column("webhook")
    table.add_column("heard", justify="right")
    table.add_column("slowest", justify="right")
    heard = defaultdict(list)
    for event in events:
        heard[event.name].append(event)
    opened = datetime.fromisoformat(timeline[0]["at"])
    for step in timeline:
        moment = datetime.fromisoformat(step["at"])
        names = [name for name in _WEBHOOKS.get(step["trigger"], ()) if name in heard or name.startswith("round.")]
        table.add_row(
            f"{moment:%H:%M:%S}.{moment.microsecond // 1000:03d}",
            f"{(moment - opened).total_seconds():.2f}",
            step["state"],
            "\n".join(names) or f"[dim]({step['trigger'].replace('_', ' ')})[/dim]",
            "\n".join(f"{len({event.operator_id for event in heard[name]})}/{operators}" for name in names),
            "\n".join(_slowest(heard[name]) for name in names),
        )
    return table


def _slowest(events: Sequence[Event]) -> str:
    waits = [(event.received - event.sent_for).total_seconds() for event in events]
    return f"{max(waits) * 1000:,.0f} ms" if waits else "–"


def draw_table(numbers: Mapping[str, int], winners: Winners) -> Table:
    """The numbers drawn, how many tickets had each, and what one of them is paid."""
    table = _table("The draw", left=("tier",), right=("number", "winners", "prize, USD"))
    count = winners.jackpot_winner_count
    share = usd(winners.jackpot_amount // count) if count else "–"
    table.add_row("jackpot", f"{numbers['jackpotNumber']:,}", f"{count:,}", share)
    for tier in winners.sub_prize_tiers:
        prize = usd(tier.winners[0].prize_amount) if tier.winners else "–"
        label = f"bonus{tier.tier}"
        table.add_row(label, f"{numbers[label]:,}", f"{tier.count:,}", prize)
    return table


def money_table(terms: Mapping[str, str]) -> Table:
    """What came in and where it went."""
    table = _table("The money, USD", left=("",), right=("in", "out"))
    for label, name, side in _MONEY:
        amount = usd(int(terms[name]))
        table.add_row(label, amount if side == "in" else "", amount if side == "out" else "")
    table.add_section()
    table.add_row("together", usd(_sum(terms, "in")), usd(_sum(terms, "out")), style="bold")
    return table


def _sum(terms: Mapping[str, str], wanted: str) -> int:
    return sum(int(terms[name]) for _, name, side in _MONEY if side == wanted)


def accounts_table(accounts: Iterable[Account], ticket_price: int, deposit: int) -> Table:
    """Each operator's balance: its deposit, less its escrow, plus what the round released to it."""
    table = _table(
        "The operators, USD", left=("",), right=("winners", "deposit", "− escrow", "+ released", "= balance")
    )
    for account in accounts:
        escrow = account.tickets * ticket_price
        amounts = (deposit, escrow, account.balance - deposit + escrow, account.balance)
        table.add_row(account.name, f"{account.winners:,}", *map(usd, amounts))
    return table


def _table(title: str, left: Iterable[str], right: Iterable[str]) -> Table:
    table = Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False
    )
    for heading in left:
        table.add_column(heading)
    for heading in right:
        table.add_column(heading, justify="right")
    return table
