"""A simulated operator: everything a licensed company does in a round, over HTTP and from outside.

One rule: it knows the coordinator's address and its own keys, and nothing else of ours but the published rules
(`protocol`).
"""

from __future__ import annotations

import gzip
import json
import random
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any

import requests

from deploy.failure import Failure
from protocol.manifest import manifest_hash
from protocol.prizes import TIERS
from protocol.seed import nonce_commit
from protocol.tickets import ticket_line, tickets_root

_SECONDS = 30
_BATCH = 5_000
_PATIENCE = 30.0
_RANGES = {f"bonus{tier.number}": tier.range for tier in TIERS}


class Refused(Failure):
    """The coordinator did not take what an operator sent."""


def call(method: str, url: str, headers: Mapping[str, str], **request: Any) -> dict[str, Any]:
    """One request, again when asked to wait (429, 503); Refused unless it is answered with success."""
    give_up = time.monotonic() + _PATIENCE
    while True:
        try:
            response = requests.request(method, url, headers=headers, timeout=_SECONDS, **request)
        except requests.RequestException as error:
            raise Refused(f"{method} {url}: {type(error).__name__}") from None
        wait = response.headers.get("Retry-After", "")
        if response.status_code in (429, 503) and wait.isdigit() and time.monotonic() + int(wait) < give_up:
            time.sleep(int(wait))
            continue
        if not response.ok:
            raise Refused(f"{method} {url}: {response.status_code} {response.text.strip()[:300]}")
        answer: dict[str, Any] = response.json()
        return answer


Winners = set[tuple[int, str]]
"""Winning tickets of one operator: tier (0: the jackpot) and ticket id."""


class SimulatedOperator:
    """One company, from its application to its winners. `numbers` makes its tickets."""

    def __init__(self, base_url: str, name: str, numbers: random.Random) -> None:
        self.name = name
        self.operator_id = ""
        self.api_key = ""
        self.tickets: list[dict[str, Any]] = []
        self._base_url = base_url
        self._numbers = numbers
        self._application: tuple[str, str] = ("", "")
        self._token = ""
        self._nonce = secrets.token_bytes(32)

    def apply(self) -> str:
        """Apply to become an operator; returns the application's id."""
        form = {
            "companyName": self.name,
            "jurisdiction": "Malta",
            "gamingLicenseNumber": f"DEMO-{secrets.token_hex(4)}",
            "contactEmail": f"{self.name.lower().replace(' ', '.')}@example.com",
            "contactName": "Demo Contact",
            "ethereumAddress": f"0x{secrets.token_hex(20)}",
        }
        applied = call("POST", f"{self._base_url}/api/public/apply", {}, json=form)
        self._application = (applied["applicationId"], applied["applicationToken"])
        return self._application[0]

    def application_status(self) -> str:
        """What became of the application."""
        application_id, token = self._application
        url = f"{self._base_url}/api/public/application-status/{application_id}"
        return str(call("GET", url, {"X-Application-Token": token})["status"])

    def log_in(self, operator_id: str, api_key: str) -> None:
        """Exchange the API key for the access token that everything below uses."""
        self.operator_id, self.api_key = operator_id, api_key
        login = call("POST", f"{self._base_url}/api/auth/operator/login", {}, json={"apiKey": api_key})
        self._token = login["accessToken"]

    def register_webhook(self, url: str) -> None:
        """Say where events are to be sent."""
        self._send("PUT", "webhook", {"url": url})

    def heartbeat(self) -> None:
        """Show a sign of life."""
        call("POST", f"{self._base_url}/api/operator/heartbeat", self._bearer)

    def sell(self, count: int, odds_range: int) -> None:
        """Make up tickets; ids in the order of sale, so not in the order in which they are hashed."""
        pick = self._numbers.randint
        self.tickets = [
            {
                "ticketId": f"{self.name.split()[-1].lower()}-{place}",
                "jackpotNumber": pick(1, odds_range),
                **{label: pick(1, highest) for label, highest in _RANGES.items()},
                "isQuickPick": pick(0, 1) == 1,
            }
            for place in range(count)
        ]

    def submit(self, round_id: int, submitted: Callable[[int], None]) -> None:
        """Submit the tickets in batches, every second one compressed. `submitted` hears of each batch's size.

        The first batch goes twice, as it would after a lost answer: that must change nothing.
        """
        batches = [self.tickets[start : start + _BATCH] for start in range(0, len(self.tickets), _BATCH)]
        for place, batch in enumerate([batches[0], *batches]):
            body = json.dumps({"roundId": round_id, "tickets": batch}).encode()
            headers = {"Content-Type": "application/json", **self._bearer}
            if place % 2:
                body, headers["Content-Encoding"] = gzip.compress(body, 1), "gzip"
            answer = call("POST", f"{self._base_url}/api/operator/tickets", headers, data=body)
            if answer["ticketsAccepted"] != len(batch):
                raise Refused(f"{self.name}: {answer['ticketsAccepted']} of {len(batch)} tickets were accepted")
            if place:
                submitted(len(batch))

    def seal(self, round_id: int) -> None:
        """Submit the manifest: the tickets' count and Merkle root, and a commitment to a nonce."""
        text = json.dumps(
            {
                "roundId": round_id,
                "operatorId": self.operator_id,
                "ticketCount": len(self.tickets),
                "ticketsRoot": self.root(round_id),
                "nonceCommit": nonce_commit(round_id, self.operator_id, self._nonce),
            }
        )
        body = {"roundId": round_id, "manifestJson": text, "manifestHash": manifest_hash(text)}
        self._send("POST", "manifest", {**body, "ticketCount": len(self.tickets)})

    def root(self, round_id: int) -> str:
        """The Merkle root of the tickets, as anybody computes it."""
        ordered = sorted(self.tickets, key=lambda ticket: str(ticket["ticketId"]))
        return tickets_root(
            ticket_line(
                round_id,
                self.operator_id,
                ticket["ticketId"],
                ticket["jackpotNumber"],
                ticket["bonus1"],
                ticket["bonus2"],
                ticket["bonus3"],
                ticket["bonus4"],
                ticket["bonus5"],
                ticket["isQuickPick"],
            )
            for ticket in ordered
        )

    def reveal(self, round_id: int) -> None:
        """Reveal the nonce, so that nobody could have known the draw's seed before."""
        self._send("POST", "nonce", {"roundId": round_id, "nonce": self._nonce.hex()})

    def winners_told(self, round_id: int) -> Winners:
        """Its winning tickets, as the coordinator tells it (check-tickets)."""
        told = self._send("POST", "check-tickets", {"roundId": round_id})
        tiers = {0: told["jackpotWinners"], **{tier["tier"]: tier["winners"] for tier in told["bonusTiers"]}}
        return {(tier, row["ticketId"]) for tier, rows in tiers.items() for row in rows}

    def winners_in_its_books(self, numbers: Mapping[str, int]) -> Winners:
        """Its winning tickets, found among those it sold with the numbers drawn."""
        return {
            (tier, ticket["ticketId"])
            for tier, label in enumerate(("jackpotNumber", *_RANGES))
            for ticket in self.tickets
            if ticket[label] == numbers[label]
        }

    @property
    def _bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"}

    def _send(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return call(method, f"{self._base_url}/api/operator/{path}", self._bearer, json=body)
