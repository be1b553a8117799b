"""The running coordinator that the contract is held against, spoken to over HTTP.

One rule: nothing of the coordinator is imported or replaced. Time alone is moved, by writing deadlines into rows, and
figures that would take years to reach.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from socket import SHUT_WR
from typing import Any
from urllib.parse import urlsplit

import psycopg2
import requests

from deploy.coordinator import here
from tests.contract.fields import NUMBERS
from tests.contract.receiver import Receiver
from tests.polling import until

PRICE = 3_000_000
RANGES = (10_000_000, 1_000_000, 100_000, 10_000, 1_000, 100)
STAGES = ("seal_at", "sealing_deadline", "escrow_deadline", "scheduled_draw_time", "settle_at", "close_at")
DEADLINES = ("sealAt", "sealingDeadline", "escrowDeadline", "scheduledDrawTime", "settleAt", "closeAt")

FAILED, CLOSED, WON, DRAWN, OPEN, UNHEARD = 1, 2, 3, 4, 5, 6
"""The played rounds: nobody joined; closed, one operator excluded; settled, jackpot won; drawn; still selling; and one
whose invited operators do not take their webhooks.
"""

TICKETS = 200
"""So many tickets of each operator in a played round: bonus5 takes every value twice, so tier 5 surely has winners."""


@dataclass(frozen=True)
class Party:
    """An operator with its key. `path` is where its webhooks arrive."""

    id: str
    key: str
    path: str

    @property
    def headers(self) -> dict[str, str]:
        """Its credentials."""
        return {"X-Service-Key": self.key}


class World:
    """A running coordinator, its address and its database; who is in it."""

    def __init__(self, url: str, environment: Mapping[str, str], admin_key: str, receiver: Receiver) -> None:
        self.url = url
        self.environment = environment
        self.admin = {"X-Service-Admin-Key": admin_key}
        self.receiver = receiver
        self.parties: dict[str, Party] = {}
        self.seen: dict[str, dict[str, Any]] = {}
        """The round that was closed, as it was shown in each state on its way."""

    def call(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Any:
        """The answer to a request, whatever it is."""
        extra = {} if body is None else {"json": body}
        return here.request(method, self.url + path, headers=dict(headers or {}), timeout=30, **extra)

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> requests.Response:
        """The answer to a GET."""
        answer: requests.Response = self.call("GET", path, headers=headers)
        return answer

    def read(self, path: str, headers: Mapping[str, str] | None = None) -> Any:
        """What a GET that succeeds shows: 200 and JSON."""
        return _content(self.get(path, headers), 200)

    def post(self, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> requests.Response:
        """The answer to a POST."""
        answer: requests.Response = self.call("POST", path, body, headers)
        return answer

    def send(self, path: str, body: Any = None, headers: Mapping[str, str] | None = None, status: int = 200) -> Any:
        """What a POST that succeeds answers: this status and JSON."""
        return _content(self.post(path, body, headers), status)

    def announce(self, path: str, size: int, headers: Mapping[str, str] | None = None) -> tuple[int, Any]:
        """Status and content of the answer to a POST of so many bytes of JSON, of which none is sent: what is refused
        for its size is refused before it is read.
        """
        address = urlsplit(self.url).netloc
        with closing(HTTPConnection(address, timeout=30)) as connection:
            connection.putrequest("POST", path)
            sent = {"Content-Type": "application/json", "Content-Length": str(size), **(headers or {})}
            for name, value in sent.items():
                connection.putheader(name, value)
            connection.endheaders()
            connection.sock.shutdown(SHUT_WR)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Ask the tables, or change what no request can: the time."""
        url = self.environment["DATABASE_URL"].replace("postgresql+psycopg2://", "postgresql://")
        with closing(psycopg2.connect(url)) as connection, connection, connection.cursor() as cursor:
            cursor.execute(query, values)
            return cursor.fetchall() if cursor.description else []

    # What people do.

    def approve(self, company: str, funds: int = 10**12, path: str | None = None) -> Party:
        """A company that applied, was approved, sent money and registered its webhook."""
        filed = self.send("/api/public/apply", form(company), status=201)["applicationId"]
        approval = f"/api/admin/applications/{filed}/approve"
        approved = self.send(approval, {"reviewNote": "welcome"}, self.admin)
        party = Party(approved["operatorId"], approved["apiKey"], path or f"hook/{company}")
        if funds:
            money = {"amountUsdc": str(funds), "reference": f"{company} 1"}
            self.send(f"/api/admin/operators/{party.id}/deposits", money, self.admin)
        answer = self.call("PUT", "/api/operator/webhook", {"url": self.receiver.url(party.path)}, party.headers)
        assert answer.status_code == 200, answer.text
        self.parties[company] = party
        return party

    def log_in(self, party: Party) -> Any:
        """A pair of tokens."""
        return self.send("/api/auth/operator/login", {"apiKey": party.key})

    def open_round(self, parties: Sequence[Party]) -> int:
        """A round that invites these operators and seals in an hour."""
        start = datetime.now(UTC)
        body: dict[str, Any] = {"operatorIds": [party.id for party in parties]}
        for hours, stage in enumerate(DEADLINES, 1):
            body[stage] = (start + timedelta(hours=hours)).isoformat()
        return int(self.send("/api/admin/rounds", body, self.admin, status=201)["id"])

    def sell(self, party: Party, round_id: int, count: int, ranges: Sequence[int] = RANGES) -> Any:
        """So many tickets."""
        batch = {"roundId": round_id, "tickets": [ticket(place, ranges) for place in range(count)]}
        return self.send("/api/operator/tickets", batch, party.headers)

    def submit(self, party: Party, round_id: int, count: int, ranges: Sequence[int] = RANGES) -> Any:
        """So many tickets and the manifest that goes with them."""
        self.sell(party, round_id, count, ranges)
        return self.send("/api/operator/manifest", manifest(round_id, count), party.headers)

    def move_clock_to(self, round_id: int, stage: str) -> None:
        """Let the deadlines up to and including `stage` be over, and the others hours away."""
        past = STAGES[: STAGES.index(stage) + 1]
        sets = [f"{name} = now() - interval '1 minute'" for name in past]
        sets += [f"{name} = now() + interval '1 hour'" for name in STAGES if name not in past]
        self.rows(f"UPDATE rounds SET {', '.join(sets)}, due_at = now(), ring_at = now() WHERE id = %s", round_id)

    def take_to(self, round_id: int, stage: str, state: str) -> dict[str, Any]:
        """Let it be past a deadline, and the worker bring the round there; returns the round then."""
        self.move_clock_to(round_id, stage)
        path = f"/api/public/rounds/{round_id}"
        shown: dict[str, Any] = until(
            lambda: (found := self.read(path))["state"] == state and found,
            within=60,
            what=f"round {round_id} to be {state}",
        )
        return shown

    @contextmanager
    def sold(self, cumulative: int) -> Iterator[None]:
        """As if so many tickets had been sold in settled rounds."""
        [(before,)] = self.rows("SELECT cumulative_tickets FROM jackpot")
        self.rows("UPDATE jackpot SET cumulative_tickets = %s", cumulative)
        try:
            yield
        finally:
            self.rows("UPDATE jackpot SET cumulative_tickets = %s", before)


def _content(answer: requests.Response, status: int) -> Any:
    assert answer.status_code == status, f"{answer.url}: {answer.status_code} {answer.text}"
    assert answer.headers["Content-Type"] == "application/json"
    return answer.json()


def form(company: str) -> dict[str, str]:
    """An application."""
    return {
        "companyName": company.capitalize(),
        "jurisdiction": "Malta",
        "gamingLicenseNumber": f"MGA/{company}",
        "contactEmail": f"ops@{company}.example",
        "contactName": "A. Person",
        "ethereumAddress": "0x" + "aB" * 20,
    }


def ticket(place: int, ranges: Sequence[int] = RANGES) -> dict[str, Any]:
    """The place-th of a series of tickets. The first four numbers stay 1 where the odds are the protocol's, so that
    nothing but tiers 4 and 5 can be won there, short of a wonder.
    """
    *_, fourth, fifth = ranges
    numbers = dict.fromkeys(NUMBERS, 1) | {"bonus4": place % fourth + 1, "bonus5": place % fifth + 1}
    if ranges is not RANGES:
        numbers |= {number: place % top + 1 for number, top in zip(NUMBERS, ranges, strict=True)}
    return {"ticketId": f"t-{place}", **numbers, "isQuickPick": place % 2 == 0}


def manifest(round_id: int, count: int, **claims: Any) -> dict[str, Any]:
    """A manifest submission."""
    text = json.dumps({"roundId": round_id, "ticketCount": count, **claims})
    digest = hashlib.sha256(text.encode()).hexdigest()
    return {"roundId": round_id, "manifestJson": text, "manifestHash": digest, "ticketCount": count}
