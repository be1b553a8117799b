"""What the demo claims of its round, each claim held against a second source.

One rule: winners are compared with the operators' own books, money with the published ledger, webhooks with the
receiver's record, and the draw is recomputed by the verifier that anybody could run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from deploy.demo_operator import SimulatedOperator
from deploy.demo_receiver import Event
from deploy.demo_report import Account, accounts_table, draw_table, money_table, timeline_table
from deploy.demo_round import DEPOSIT, DemoFailure, Scene
from deploy.procfile import TOP
from player.coordinator import Winners

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
"""What every operator hears of a round in which all of them sealed and paid, in this order."""

_WEBHOOK_SECONDS = 20.0
_VERIFY_SECONDS = 120.0


def check(scene: Scene, companies: Sequence[SimulatedOperator], round_id: int) -> None:
    """Check a CLOSED round from all sides and show it; DemoFailure names the first thing that does not hold."""
    anybody = companies[0].coordinator
    winners = anybody.winners(round_id)
    terms = anybody.proof_bundle(round_id)["ledger"]
    _webhooks(scene, companies, round_id)
    now = scene.desk.round(round_id)
    _winners(companies, round_id, now, winners)
    scene.screen.step(f"{winners.total_sub_prize_winners:,} winners: published, told and in the operators' own books")
    accounts = [
        Account(
            company.name,
            len(company.tickets),
            len(company.winners_in_its_books(now)),
            company.coordinator.balance().balance_usdc,
        )
        for company in companies
    ]
    _money(terms, winners, now, accounts)
    scene.screen.step("the money adds up: ledger, prizes and the operators' balances")

    scene.screen.table(timeline_table(now["timeline"], scene.receiver.events, len(companies)))
    scene.screen.table(draw_table(now, winners))
    scene.screen.table(money_table(terms))
    scene.screen.table(accounts_table(accounts, now["ticketPriceUsdc"], DEPOSIT))
    _verify(scene, round_id)


def _winners(
    companies: Sequence[SimulatedOperator], round_id: int, numbers: Mapping[str, int], winners: Winners
) -> None:
    published = {
        (won.operator_id, tier.tier, won.ticket_id) for tier in winners.sub_prize_tiers for won in tier.winners
    }
    jackpots, found = 0, set()
    for company in companies:
        told, own = set(company.coordinator.check_tickets(round_id).wins), company.winners_in_its_books(numbers)
        if told != own:
            raise DemoFailure(f"{company.name} was told of {len(told)} winners and finds {len(own)} in its books")
        jackpots += sum(tier == 0 for tier, _ in own)
        found |= {(company.operator_id, tier, ticket_id) for tier, ticket_id in own if tier}
    if published != found:
        raise DemoFailure(f"{len(published ^ found)} sub-prize winners differ between the public list and the books")
    if (winners.jackpot_winner_count, winners.total_sub_prize_winners) != (jackpots, len(found)):
        raise DemoFailure("the published numbers of winners are not those of the published winners")


def _webhooks(scene: Scene, companies: Sequence[SimulatedOperator], round_id: int) -> None:
    """Every operator heard every event of the round once, and the coordinator knows that it did."""
    drawn = scene.desk.round(round_id)
    expected = Counter((company.operator_id, name) for company in companies for name in ROUND_EVENTS)
    # Only who sold a ticket with the jackpot number hears of that.
    expected.update(
        (company.operator_id, "operator.won")
        for company in companies
        if any(tier == 0 for tier, _ in company.winners_in_its_books(drawn))
    )
    deadline = time.monotonic() + _WEBHOOK_SECONDS
    while True:
        scene.receiver.news.clear()
        received = _of_round(scene.receiver.events, round_id)
        deliveries = scene.desk.round(round_id)["deliveries"]
        settled = received == expected and deliveries["delivered"] == expected.total()
        if settled or time.monotonic() > deadline:
            break
        scene.receiver.news.wait(1.0)
    if missing := expected - received:
        raise DemoFailure(f"{missing.total()} webhooks never came, such as {' to '.join(reversed(min(missing)))}")
    if surplus := received - expected:
        raise DemoFailure(f"{surplus.total()} webhooks too many came, such as {' to '.join(reversed(min(surplus)))}")
    if deliveries != {"pending": 0, "delivered": expected.total(), "failed": 0}:
        raise DemoFailure(f"all {expected.total()} webhooks came, but the coordinator counts {deliveries}")
    if scene.receiver.refused != 1:  # the forged one
        raise DemoFailure(f"{scene.receiver.refused - 1} webhooks of the coordinator had a wrong signature")
    scene.screen.step(f"{expected.total()} signed webhooks: every operator got every event, each exactly once")


def _of_round(events: Sequence[Event], round_id: int) -> Counter[tuple[str, str]]:
    return Counter((event.operator_id, event.name) for event in events if event.round_id == round_id)


def _money(terms: Mapping[str, str], winners: Winners, now: Mapping[str, Any], accounts: Sequence[Account]) -> None:
    amount = {name: int(text) for name, text in terms.items()}
    came = amount["G"] + amount["pool0"] + amount["reserve0"]
    released = amount["C"] + amount["subPaid"] + amount["jackpotPaid"] + amount["bonusPaid"]
    prizes = sum(won.prize_amount for tier in winners.sub_prize_tiers for won in tier.winners)
    sold = sum(account.tickets for account in accounts) * now["ticketPriceUsdc"]
    balances = sum(account.balance for account in accounts)
    for what, one, other in (
        ("what was collected is what was sold", amount["G"], sold),
        ("what went is what came", amount["feeKept"] + released + amount["pool1"] + amount["reserve1"], came),
        ("sub-prizes paid are those of the winners", amount["subPaid"], prizes),
        ("balances are deposits less tickets plus releases", balances, len(accounts) * DEPOSIT - sold + released),
    ):
        if one != other:
            raise DemoFailure(f"money: {what}? No: {one} and {other} micro-USDC")


def _verify(scene: Scene, round_id: int) -> None:
    arguments = ["-m", "protocol.verify", scene.base_url, "--round", str(round_id)]
    try:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=TOP,
            env=os.environ | {"PYTHONIOENCODING": "utf-8"},
            stdout=subprocess.PIPE,
            encoding="utf-8",
            timeout=_VERIFY_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise DemoFailure(f"the verifier did not finish in {_VERIFY_SECONDS:.0f} s") from None
    scene.screen.output(f"python {' '.join(arguments)}", done.stdout)
    if done.returncode != 0 or done.stdout.splitlines()[-1:] != ["verified"]:
        raise DemoFailure(f"the draw could not be verified (exit code {done.returncode})")
