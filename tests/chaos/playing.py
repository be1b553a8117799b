"""One round over HTTP against a running coordinator, and the questions a test asks of it afterwards.

The one rule kept here: whatever is asked is asked of the public or admin API, or read from the tables; nothing is
taken from the processes that were killed.
"""

import hashlib
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg2
import requests

from deploy.coordinator import Coordinator
from deploy.sandbox import admin_key, operator

RANGES = (10_000_000, 1_000_000, 100_000, 10_000, 1_000, 100)
LABELS = ("jackpotNumber", "bonus1", "bonus2", "bonus3", "bonus4", "bonus5")
STAGES = ("sealAt", "sealingDeadline", "escrowDeadline", "scheduledDrawTime", "settleAt", "closeAt")

WHOLE_TIMELINE = [
    "opened",
    "sales_ended",
    "recount_agreed",
    "escrow_complete",
    "seed_fixed",
    "matching_complete",
    "tabulations_agreed",
    "close_time",
]
WHOLE_LOG = ["ROUND_OPENED", *["MANIFEST_SUBMITTED"] * 3, "ROUND_SEALED", "ROUND_DRAWN", "ROUND_SETTLED"]
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


@dataclass(frozen=True)
class Lottery:
    """A running coordinator with an admin key and three funded operators (id → API key)."""

    url: str
    database_url: str
    redis_url: str
    admin: str
    operators: dict[str, str]

    def get(self, path: str) -> Any:
        """Read something public, or the admin's view of it."""
        answer = requests.get(self.url + path, headers={"X-Service-Admin-Key": self.admin}, timeout=10)
        answer.raise_for_status()
        return answer.json()

    def post(self, path: str, body: dict[str, Any], key: str | None = None) -> Any:
        """Send something, as an operator if its key is given, else as the admin."""
        headers = {"X-Service-Key": key} if key else {"X-Service-Admin-Key": self.admin}
        answer = requests.post(self.url + path, json=body, headers=headers, timeout=30)
        assert answer.ok, f"{path}: {answer.status_code} {answer.text}"
        return answer.json()

    def connect(self) -> "psycopg2.extensions.connection":
        """A connection of the test's own."""
        return psycopg2.connect(self.database_url.replace("postgresql+psycopg2://", "postgresql://"))

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Read from the tables."""
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(query, values)
            found = cursor.fetchall()
        connection.close()
        return found


def furnish(running: Coordinator) -> Lottery:
    """An admin key and three funded operators."""
    key = admin_key(running, "chaos")
    made = [operator(running.base_url, key, f"Operator {number}") for number in range(3)]
    return Lottery(
        running.base_url,
        running.engines.database_url,
        running.engines.redis_url,
        key,
        {one["operatorId"]: one["apiKey"] for one in made},
    )


def open_round(lottery: Lottery, stage_seconds: Sequence[float]) -> int:
    """Open a round whose stages last so many seconds each; returns its id."""
    moment, body = datetime.now(UTC), {}
    for stage, seconds in zip(STAGES, stage_seconds, strict=True):
        moment += timedelta(seconds=seconds)
        body[stage] = moment.isoformat()
    return int(lottery.post("/api/admin/rounds", body)["id"])


def take_part(lottery: Lottery, round_id: int, seed: int, tickets: int) -> None:
    """Every operator submits so many tickets and its manifest."""
    numbers = random.Random(seed)
    for key in lottery.operators.values():
        batch = [
            {
                "ticketId": f"t-{place}",
                **{label: numbers.randint(1, top) for label, top in zip(LABELS, RANGES, strict=True)},
                "isQuickPick": True,
            }
            for place in range(tickets)
        ]
        lottery.post("/api/operator/tickets", {"roundId": round_id, "tickets": batch}, key)
        text = json.dumps({"roundId": round_id, "ticketCount": tickets})
        digest = hashlib.sha256(text.encode()).hexdigest()
        manifest = {"roundId": round_id, "manifestJson": text, "manifestHash": digest, "ticketCount": tickets}
        lottery.post("/api/operator/manifest", manifest, key)


def assert_nothing_lost_or_doubled(lottery: Lottery, round_id: int) -> None:
    """A CLOSED round of three operators looks as if nothing had ever been killed, to us and to a stranger."""
    timeline = [step["trigger"] for step in lottery.get(f"/api/admin/rounds/{round_id}")["timeline"]]
    assert timeline == WHOLE_TIMELINE
    log = [entry["type"] for entry in lottery.get(f"/api/public/rounds/{round_id}/events")["events"]]
    assert log == WHOLE_LOG
    told = Counter(
        lottery.rows(
            "SELECT event, operator_id FROM deliveries WHERE round_id = %s AND event LIKE 'round.%%'", round_id
        )
    )
    expected = {(event, operator_id) for event in ROUND_EVENTS for operator_id in lottery.operators}
    escrow_deadline = {(event, operator_id) for event, operator_id in told if event == "round.escrow_deadline"}
    assert set(told) - escrow_deadline == expected
    assert set(told.values()) == {1}
    assert lottery.rows("SELECT sum(balance)::bigint FROM ledger_accounts") == [(0,)]
    assert lottery.rows("SELECT balance FROM ledger_accounts WHERE id = %s", f"escrow:{round_id}") == [(0,)]
    verified = subprocess.run(
        [sys.executable, "-m", "protocol.verify", lottery.url, "--round", str(round_id)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert verified.stdout.splitlines()[-1] == "verified"
