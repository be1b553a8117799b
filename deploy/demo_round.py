"""The demo's round: operators come aboard, sell, seal, reveal, and the round is watched until it is CLOSED.

One rule: everything happens over HTTP, and on the coordinator's own clock. The demo sets the deadlines; it never
pushes a round along.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import requests

from deploy.coordinator import Coordinator
from deploy.demo_desk import Desk
from deploy.demo_operator import SimulatedOperator
from deploy.demo_receiver import Receiver
from deploy.demo_screen import Screen, usd
from deploy.failure import Failure
from protocol.timestamps import format_timestamp

OPERATORS = 5
TICKETS = 20_000
"""Tickets of each operator."""
DEPOSIT = 100_000 * 1_000_000
"""What each operator deposits, micro-USDC."""

_NAMES = ("Alba", "Bora", "Cielo", "Duna", "Etna")
# Seconds from each deadline to the next on a machine at ease; sales come first.
_STAGES = {
    "sealAt": 14.0,
    "sealingDeadline": 1.0,
    "escrowDeadline": 2.0,
    "scheduledDrawTime": 1.0,
    "settleAt": 1.0,
    "closeAt": 1.0,
}
# What each state waits for: the deadline, and what it brings.
_NEXT = {
    "OPEN": ("sealAt", "sales end"),
    "SEALING": ("sealingDeadline", "sealing ends"),
    "SEALED": ("escrowDeadline", "escrow ends"),
    "ESCROWED": ("scheduledDrawTime", "the draw is"),
    "DRAWN": ("settleAt", "it is settled"),
    "SETTLED": ("closeAt", "it is closed"),
}
_SECONDS_TO_START_AT_EASE = 4.0
_SLOWEST = 3.0
_LATE = 15.0
_LOOK_EVERY = 1.0
_WEBHOOK_PATIENCE = 0.5


class DemoFailure(Failure):
    """Something did not hold."""


@dataclass(frozen=True)
class Scene:
    """What every part of the demo acts in."""

    running: Coordinator
    desk: Desk
    receiver: Receiver
    screen: Screen

    @property
    def base_url(self) -> str:
        """The coordinator's address."""
        return self.running.base_url


@dataclass(frozen=True)
class Pace:
    """How much slower than a machine at ease this one is: 1 to 3. It stretches every deadline.

    Starting is measured because it was just done and costs what a round costs: processes, disk, database.
    """

    slowness: float

    @classmethod
    def of_a_machine_that_starts_in(cls, seconds: float) -> Pace:
        """The pace for a machine whose coordinator took so long to be ready."""
        return cls(min(_SLOWEST, max(1.0, seconds / _SECONDS_TO_START_AT_EASE)))

    def deadlines(self, now: datetime) -> dict[str, str]:
        """The deadlines of a round opened now, by the names of the admin API."""
        moments = {}
        for name, seconds in _STAGES.items():
            now += timedelta(seconds=seconds * self.slowness)
            moments[name] = format_timestamp(now)
        return moments

    @property
    def patience(self) -> float:
        """Seconds from a round's opening after which it should long have been CLOSED."""
        return (sum(_STAGES.values()) + _LATE) * self.slowness


def onboard(scene: Scene, seed: int) -> list[SimulatedOperator]:
    """Five operators, active and funded, whose tickets follow from `seed`; and a forged webhook, refused."""
    companies = []
    for name in _NAMES[:OPERATORS]:
        numbers = random.Random(f"{seed} {name}")  # noqa: S311 - play tickets, to be had again from the seed
        company = SimulatedOperator(scene.base_url, f"Operator {name}", numbers)
        applied = company.coordinator.apply(company.application())
        company.take_key(scene.desk.approve(applied.application_id))
        became = company.coordinator.application_status(applied.application_id, applied.application_token)
        if (became.status, became.operator_id) != ("approved", company.operator_id):
            raise DemoFailure(f"{company.name} is approved and its application does not say so")
        company.coordinator.set_webhook(scene.receiver.url_for(company.operator_id, company.api_key))
        company.coordinator.heartbeat()
        scene.desk.record_deposit(company.operator_id, DEPOSIT, f"wire from {company.name}")
        companies.append(company)
    _forge(scene, companies[0])
    return companies


def play(scene: Scene, companies: Sequence[SimulatedOperator], pace: Pace) -> int:
    """One round from OPEN to CLOSED; returns its id."""
    screen = scene.screen
    opened = scene.desk.open_round(pace.deadlines(datetime.now(UTC)))
    began, round_id = time.monotonic(), int(opened["id"])
    screen.step(f"round {round_id} is OPEN, bound to a secret by {opened['seedCommit'][:12]}…")
    _sell(scene, companies, round_id, opened["oddsRange"])
    _watch(scene, companies, round_id, began + pace.patience)
    return round_id


def _forge(scene: Scene, company: SimulatedOperator) -> None:
    """Show that the receiver would notice: a delivery nobody signed must be refused."""
    forged = requests.post(
        scene.receiver.url_for(company.operator_id, company.api_key),
        data=b'{"event":"round.drawn","roundId":1,"timestamp":"2026-01-01T00:00:00.000Z","data":{}}',
        headers={"X-Service-Delivery": "forged", "X-Service-Signature": "0" * 64},
        timeout=10,
    )
    if forged.status_code != 401 or any(event.delivery_id == "forged" for event in scene.receiver.events):
        raise DemoFailure(f"the receiver answered {forged.status_code} to a forged webhook, not 401")
    scene.screen.step("a forged webhook was refused by the receiver (401)")


def _sell(scene: Scene, companies: Sequence[SimulatedOperator], round_id: int, odds_range: int) -> None:
    total = TICKETS * len(companies)
    for company in companies:
        company.sell(TICKETS, odds_range)
    began = time.monotonic()
    with (
        scene.screen.counting("tickets", total) as submitted,
        # Two at a time: more would only queue behind one another on a small machine.
        ThreadPoolExecutor(2) as pool,
    ):

        def send(company: SimulatedOperator) -> None:
            company.submit(round_id, submitted)
            company.seal(round_id)

        for _ in pool.map(send, companies):
            pass
    seconds = time.monotonic() - began
    scene.screen.step(
        f"{len(companies)} × {TICKETS:,} tickets and {len(companies)} manifests sent: "
        f"{seconds:.1f} s, {total / seconds:,.0f} a second"
    )


def _watch(scene: Scene, companies: Sequence[SimulatedOperator], round_id: int, give_up: float) -> None:
    """Follow the round to its end. Webhooks say when to look, and a clock does should they not come."""
    shown, waits_to_reveal = 0, list(companies)
    with scene.screen.waiting() as waiting:
        while True:
            scene.receiver.news.clear()
            now = scene.desk.round(round_id)
            for step in now["timeline"][shown:]:
                if shown:  # that it is OPEN was said
                    scene.screen.step(f"round {round_id} is {step['state']}{_detail(step['trigger'], now)}")
                shown += 1
            state = now["state"]
            if state == "CLOSED" and waits_to_reveal:
                raise DemoFailure(f"round {round_id} was drawn before its operators could reveal their nonces")
            if state == "CLOSED":
                return
            if state == "FAILED":
                raise DemoFailure(f"round {round_id} FAILED: {now['failureReason']}")
            if time.monotonic() > give_up:
                raise DemoFailure(f"round {round_id} is still {state}, long after it should have been CLOSED")
            if scene.running.supervisor.wait(0):  # raises with the reason when a process would not stay up
                raise DemoFailure("the coordinator's processes stopped")
            waiting(_awaited(now))
            if waits_to_reveal and state in ("SEALED", "ESCROWED"):
                _reveal(scene, waits_to_reveal, round_id)
            else:
                scene.receiver.news.wait(_LOOK_EVERY)


def _reveal(scene: Scene, companies: list[SimulatedOperator], round_id: int) -> None:
    """Each operator reveals its nonce when its webhook says that the round is sealed; the draw will not wait, so
    after a moment without one it believes what the API says. Empties `companies`.
    """
    by_webhook, others = 0, 0
    patience = time.monotonic() + _WEBHOOK_PATIENCE
    while companies:
        scene.receiver.news.clear()
        told = {
            event.operator_id
            for event in scene.receiver.events
            if event.name == "round.sealed" and event.round_id == round_id
        }
        late = time.monotonic() > patience
        for company in [company for company in companies if late or company.operator_id in told]:
            company.reveal(round_id)
            companies.remove(company)
            by_webhook += company.operator_id in told
            others += company.operator_id not in told
        if companies:
            scene.receiver.news.wait(_WEBHOOK_PATIENCE)
    otherwise = f", {others} by looking" if others else ""
    scene.screen.step(f"{by_webhook} operators learned by webhook that it is sealed{otherwise}: nonces revealed")


def _awaited(now: Mapping[str, Any]) -> str:
    deadline, what = _NEXT[now["state"]]
    seconds = (datetime.fromisoformat(now["deadlines"][deadline]) - datetime.now(UTC)).total_seconds()
    when = f"in {seconds:.0f} s" if seconds >= 1 else "any moment"
    return f"round {now['id']} is {now['state']}, {what} {when}"


def _detail(trigger: str, now: Mapping[str, Any]) -> str:
    match trigger:
        case "recount_agreed":
            return f": {now['totalTickets']:,} tickets recounted, fixed by {now['chainedAnchorHash'][:12]}…"
        case "escrow_complete":
            return f": {usd(int(now['totalDeposited']))} USDC from {now['escrowedOperatorCount']} operators"
        case "seed_fixed":
            return ", its seed is fixed"
        case "matching_complete":
            numbers = [now["jackpotNumber"], *(now[f"bonus{tier}"] for tier in range(1, 6))]
            return f": {' · '.join(f'{number:,}' for number in numbers)}"
        case "tabulations_agreed":
            return f": counted twice, paid, {now['settlementHash'][:12]}…"
        case _:
            return ""
