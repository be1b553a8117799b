"""`make demo`: five operators play one whole round on this machine, and the draw is verified from the outside.

One rule: it is a demonstration only if it can fail. Every claim on the screen is checked, and the last line says
`verified` only when all of them held.
"""

from __future__ import annotations

import contextlib
import logging
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import requests

from deploy.children import last_lines
from deploy.coordinator import Coordinator, coordinator
from deploy.data_folder import throw_away
from deploy.demo_operator import SimulatedOperator, call
from deploy.demo_receiver import Event, Receiver
from deploy.demo_report import (
    ROUND_EVENTS,
    Screen,
    adds_up,
    money_table,
    timeline_table,
    winners_table,
)
from deploy.engines import leave_on_sigterm
from deploy.failure import Failure
from deploy.procfile import TOP
from deploy.sandbox import admin_key

OPERATORS = 5
TICKETS = 20_000
DEPOSIT_MICRO_USDC = 100_000 * 1_000_000
# Long enough to submit everything on a machine several times slower than a small one.
SALES_SECONDS = 25
# From one deadline to the next, in their order: sealing, escrow, draw, settlement, closing.
STAGES_SECONDS = (2, 2, 3, 1, 1)
LATE_SECONDS = 40
"""How much later than its deadlines the round may be closed before the demo has failed."""


class DemoFailure(Failure):
    """Something did not hold."""


def main() -> int:
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    leave_on_sigterm()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    screen = Screen()
    logs = Path(tempfile.mkdtemp(prefix="lottery-demo-"))
    try:
        with throw_away() as folder:
            screen.step("starting PostgreSQL, Redis, web, worker and scheduler on free ports")
            with coordinator(folder, log_dir=logs) as running:
                _play(running, screen)
    except (Failure, OSError, requests.RequestException) as failure:
        print(f"demo: failed: {failure}", file=sys.stderr, flush=True)
        for log in sorted(logs.glob("*.log")):
            print(f"\nlast lines of {log}:\n{last_lines(log, 5)}", file=sys.stderr, flush=True)
        return 1
    except (KeyboardInterrupt, SystemExit):
        print("demo: interrupted, everything stopped", file=sys.stderr, flush=True)
        return 130
    for log in logs.iterdir():
        log.unlink()
    logs.rmdir()
    print("demo: round 1 CLOSED, verified", flush=True)
    return 0


def _play(running: Coordinator, screen: Screen) -> None:
    seed = secrets.randbits(32)
    screen.step(f"ready at {running.base_url}; the operators' numbers come from seed {seed}")
    admin = {"X-Service-Admin-Key": admin_key(running, "demo")}
    sealed = threading.Event()

    def on_event(event: Event) -> None:
        if event.name == "round.sealed":
            sealed.set()

    with Receiver(on_event) as receiver:
        companies = [
            SimulatedOperator(running.base_url, f"Operator {name}", random.Random(f"{seed} {name}"))  # noqa: S311 - ticket numbers of a demonstration
            for name in ("Alba", "Bora", "Cielo", "Duna", "Etna")[:OPERATORS]
        ]
        for company in companies:
            _onboard(running.base_url, company, receiver, admin)
        screen.step(f"{OPERATORS} operators applied, were approved, funded and logged in; webhooks registered")
        _refuse_forgery(receiver, companies[0])
        screen.step("the webhook receiver refused a forged delivery (401)")

        opened = _open_round(running.base_url, admin)
        round_id = int(opened["id"])
        screen.step(f"round {round_id} is OPEN; it commits to a secret: {opened['seedCommit'][:16]}…")
        _sell(companies, opened, screen)
        _until(screen, running.base_url, round_id, sealed, companies)
        _check(running.base_url, admin, receiver, companies, round_id, screen)


def _onboard(base_url: str, company: SimulatedOperator, receiver: Receiver, admin: dict[str, str]) -> None:
    application_id = company.apply()
    approve = f"{base_url}/api/admin/applications/{application_id}/approve"
    approved = call("POST", approve, admin, json={"reviewNote": "license checked"})
    operator_id, api_key = approved["operatorId"], approved["apiKey"]
    company.begin(operator_id, api_key, receiver.url_of(operator_id, api_key))
    deposit = {"amountUsdc": str(DEPOSIT_MICRO_USDC), "reference": f"wire of {company.company}"}
    call("POST", f"{base_url}/api/admin/operators/{operator_id}/deposits", admin, json=deposit)


def _refuse_forgery(receiver: Receiver, company: SimulatedOperator) -> None:
    url = receiver.url_of(company.operator_id, company.api_key)
    forged = requests.post(
        url,
        data=b'{"event":"round.drawn","roundId":1,"timestamp":"","data":{}}',
        headers={"X-Service-Delivery": "forged", "X-Service-Signature": "0" * 64},
        timeout=10,
    )
    if forged.status_code != 401 or receiver.events:
        raise DemoFailure("the receiver believed a forged delivery")


def _open_round(base_url: str, admin: dict[str, str]) -> dict[str, Any]:
    moment = datetime.now(UTC) + timedelta(seconds=SALES_SECONDS)
    deadlines = {"sealAt": moment.isoformat()}
    stages = ("sealingDeadline", "escrowDeadline", "scheduledDrawTime", "settleAt", "closeAt")
    for stage, seconds in zip(stages, STAGES_SECONDS, strict=True):
        moment += timedelta(seconds=seconds)
        deadlines[stage] = moment.isoformat()
    return call("POST", f"{base_url}/api/admin/rounds", admin, json=deadlines)


def _sell(companies: list[SimulatedOperator], opened: dict[str, Any], screen: Screen) -> None:
    for company in companies:
        company.sell(TICKETS, opened["oddsRange"])
    began = time.monotonic()

    def submit(company: SimulatedOperator) -> SimulatedOperator:
        company.submit(opened["id"])
        company.seal(opened["id"])
        return company

    with ThreadPoolExecutor(2) as pool:
        for company in pool.map(submit, companies):
            screen.step(f"{company.company}: {len(company.tickets):,} tickets and the manifest are in")
    seconds = time.monotonic() - began
    total = sum(len(company.tickets) for company in companies)
    screen.step(f"{total:,} tickets over HTTP in {seconds:.1f} s ({total / seconds:,.0f} a second)")


def _until(
    screen: Screen, base_url: str, round_id: int, sealed: threading.Event, companies: list[SimulatedOperator]
) -> None:
    """Watch the round to its end; reveal the nonces once it is sealed, which a webhook tells (or our own eyes)."""
    give_up = time.monotonic() + SALES_SECONDS + sum(STAGES_SECONDS) + LATE_SECONDS
    revealed, state = False, "OPEN"
    with _waiting(screen) as waiting:
        while state != "CLOSED":
            if time.monotonic() > give_up:
                raise DemoFailure(f"round {round_id} is still {state}")
            now = call("GET", f"{base_url}/api/public/rounds/{round_id}", {})
            if now["state"] != state:
                state = now["state"]
                screen.step(f"round {round_id} is {state}{_said_of(now)}")
            if state == "FAILED":
                raise DemoFailure(f"round {round_id} failed: {now['failureReason']}")
            if not revealed and (sealed.is_set() or state in ("SEALED", "ESCROWED")):
                for company in companies:
                    company.reveal(round_id)
                revealed = True
                screen.step(f"{len(companies)} operators revealed their nonces")
            waiting(f"round {round_id} is {state}, draw at {now['scheduledDrawTime']}")
            time.sleep(0.1)


@contextlib.contextmanager
def _waiting(screen: Screen) -> Iterator[Callable[[str], None]]:
    """A spinner with what is waited for, on a terminal; nothing elsewhere."""
    if not screen.console.is_terminal:
        yield lambda text: None
        return
    with screen.console.status("") as status:
        yield status.update


def _said_of(now: dict[str, Any]) -> str:
    match now["state"]:
        case "SEALED" | "ESCROWED":
            return f": {now['totalTickets']:,} tickets, anchored as {now['chainedAnchorHash'][:16]}…"
        case "DRAWN":
            numbers = [now["jackpotNumber"], *(now[f"bonus{tier}"] for tier in range(1, 6))]
            return f": seed {now['drawSeed'][:16]}…, numbers {' '.join(f'{number:,}' for number in numbers)}"
        case "SETTLED":
            return f": settlement {now['settlementHash'][:16]}…"
        case _:
            return ""


def _check(
    base_url: str,
    admin: dict[str, str],
    receiver: Receiver,
    companies: list[SimulatedOperator],
    round_id: int,
    screen: Screen,
) -> None:
    public = f"{base_url}/api/public"
    detail = call("GET", f"{public}/rounds/{round_id}", {})
    winners = call("GET", f"{public}/draw/draw_{round_id}/winners?limit=10000", {})
    proof = call("GET", f"{public}/rounds/{round_id}/proof", {})
    _same_winners(companies, round_id, detail, winners)
    screen.step("every operator found the same winners in its own books")
    _every_webhook_once(receiver, companies, round_id)
    screen.step("every operator received every webhook, each exactly once, each with a true signature")
    if not adds_up(proof["ledger"]):
        raise DemoFailure("the money does not add up")

    timeline = call("GET", f"{base_url}/api/admin/rounds/{round_id}", admin)["timeline"]
    screen.show(timeline_table(timeline, receiver.events, len(companies)))
    screen.show(winners_table(winners, detail))
    screen.show(money_table(proof["ledger"]))

    screen.console.print(f"\n$ python -m protocol.verify {base_url} --round {round_id}")
    command = [sys.executable, "-m", "protocol.verify", base_url, "--round", str(round_id)]
    verified = subprocess.run(command, cwd=TOP, stdout=subprocess.PIPE, text=True, timeout=120, check=False)
    screen.console.print(verified.stdout, end="")
    if verified.returncode or verified.stdout.splitlines()[-1:] != ["verified"]:
        raise DemoFailure("the draw could not be verified")


def _same_winners(
    companies: list[SimulatedOperator], round_id: int, numbers: dict[str, int], winners: dict[str, Any]
) -> None:
    published = Counter(
        (tier["tier"], row["operatorId"], row["ticketId"])
        for tier in winners["subPrizeTiers"]
        for row in tier["winners"]
    )
    found: Counter[tuple[int, str, str]] = Counter()
    for company in companies:
        told, own = company.winners(round_id), company.winners_by_own_books(numbers)
        if told != own:
            raise DemoFailure(f"{company.company} was told of other winners than are in its books")
        found.update((tier, company.operator_id, ticket) for tier in range(1, 6) for ticket in own[tier])
    if found != published:
        raise DemoFailure("the published winners are not the operators' winners")


def _every_webhook_once(receiver: Receiver, companies: list[SimulatedOperator], round_id: int) -> None:
    expected = {(company.operator_id, name) for company in companies for name in ROUND_EVENTS}
    deadline = time.monotonic() + 15
    while True:
        received = Counter(
            (event.operator_id, event.name)
            for event in receiver.events
            if event.round_id == round_id and event.name.startswith("round.")
        )
        missing = expected - set(received)
        if not missing or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    if missing:
        raise DemoFailure(f"{len(missing)} webhooks never came, such as {min(missing)}")
    if twice := [key for key, count in received.items() if count > 1]:
        raise DemoFailure(f"{len(twice)} events came as two deliveries, such as {min(twice)}")
    if receiver.refused != 1:  # the forgery at the beginning
        raise DemoFailure(f"{receiver.refused - 1} webhooks had a wrong signature")


if __name__ == "__main__":
    sys.exit(main())
