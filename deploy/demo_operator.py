"""A simulated operator: everything a licensed company does in a round, over HTTP and from outside.

One rule: it knows the coordinator's address and its own keys, and nothing else of ours but the published rules
(`protocol`).
"""

from __future__ import annotations

import gzip
import json
import random
import secrets
from typing import Any

import requests

from deploy.failure import StartFailure
from protocol.manifest import manifest_hash
from protocol.seed import nonce_commit
from protocol.tickets import ticket_line, tickets_root

_SECONDS = 60
_RANGES = (1_000_000, 100_000, 10_000, 1_000, 100)
_BATCH = 5_000


class Refused(StartFailure):
    """The coordinator did not take what an operator sent."""


def call(method: str, url: str, headers: dict[str, str], **request: Any) -> dict[str, Any]:
    """One request; Refused unless it is answered with success."""
    try:
        response = requests.request(method, url, headers=headers, timeout=_SECONDS, **request)
    except requests.RequestException as error:
        raise Refused(f"{method} {url}: {type(error).__name__}") from None
    if not response.ok:
        raise Refused(f"{method} {url}: {response.status_code} {response.text.strip()[:300]}")
    answer: dict[str, Any] = response.json()
    return answer


class SimulatedOperator:
    """One company, from its application to its winners. `numbers` makes its tickets."""

    def __init__(self, base_url: str, company: str, numbers: random.Random) -> None:
        self.company = company
        self.operator_id = ""
        self.api_key = ""
        self.tickets: list[dict[str, Any]] = []
        self._base_url = base_url
        self._numbers = numbers
        self._token = ""
        self._nonce = secrets.token_bytes(32)

    def apply(self) -> str:
        """Apply, and read the application's status with the token that came back; returns its id."""
        form = {
            "companyName": self.company,
            "jurisdiction": "Malta",
            "gamingLicenseNumber": f"DEMO-{secrets.token_hex(4)}",
            "contactEmail": f"{self.company.lower().replace(' ', '.')}@example.com",
            "contactName": "Demo Contact",
            "ethereumAddress": f"0x{secrets.token_hex(20)}",
        }
        applied = call("POST", f"{self._base_url}/api/public/apply", {}, json=form)
        application_id = str(applied["applicationId"])
        token = {"X-Application-Token": applied["applicationToken"]}
        status = call("GET", f"{self._base_url}/api/public/application-status/{application_id}", token)
        if status["status"] != "pending":
            raise Refused(f"a new application is {status['status']}, not pending")
        return application_id

    def begin(self, operator_id: str, api_key: str, webhook_url: str) -> None:
        """Log in, register the webhook, and show a sign of life."""
        self.operator_id, self.api_key = operator_id, api_key
        login = call("POST", f"{self._base_url}/api/auth/operator/login", {}, json={"apiKey": api_key})
        self._token = login["accessToken"]
        self._send("PUT", "webhook", {"url": webhook_url})
        call("POST", f"{self._base_url}/api/operator/heartbeat", self._bearer)

    def sell(self, count: int, odds_range: int) -> None:
        """Make up tickets; ids in the order of sale, so not in the order in which they are hashed."""
        pick = self._numbers.randint
        self.tickets = [
            {
                "ticketId": f"{self.company.split()[-1].lower()}-{place}",
                "jackpotNumber": pick(1, odds_range),
                **{f"bonus{tier}": pick(1, top) for tier, top in enumerate(_RANGES, 1)},
                "isQuickPick": pick(0, 1) == 1,
            }
            for place in range(count)
        ]

    def submit(self, round_id: int) -> None:
        """Submit every ticket in batches, every second one compressed, the first one twice as after a lost answer."""
        batches = [self.tickets[start : start + _BATCH] for start in range(0, len(self.tickets), _BATCH)]
        for place, batch in enumerate([batches[0], *batches]):
            body = json.dumps({"roundId": round_id, "tickets": batch}).encode()
            headers = {"Content-Type": "application/json", **self._bearer}
            if place % 2:
                body, headers["Content-Encoding"] = gzip.compress(body, 1), "gzip"
            answer = call("POST", f"{self._base_url}/api/operator/tickets", headers, data=body)
            if answer["ticketsAccepted"] != len(batch):
                raise Refused(f"{answer['ticketsAccepted']} of {len(batch)} tickets were accepted")

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

    def winners(self, round_id: int) -> dict[int, list[str]]:
        """Winning ticket ids of each tier, as the coordinator tells the operator."""
        told = self._send("POST", "check-tickets", {"roundId": round_id})
        tiers = {tier["tier"]: [row["ticketId"] for row in tier["winners"]] for tier in told["bonusTiers"]}
        return {0: [row["ticketId"] for row in told["jackpotWinners"]], **tiers}

    def winners_by_own_books(self, numbers: dict[str, int]) -> dict[int, list[str]]:
        """Winning ticket ids of each tier, found among what was sold."""
        labels = ("jackpotNumber", "bonus1", "bonus2", "bonus3", "bonus4", "bonus5")
        return {
            tier: sorted(ticket["ticketId"] for ticket in self.tickets if ticket[label] == numbers[label])
            for tier, label in enumerate(labels)
        }

    @property
    def _bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"}

    def _send(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return call(method, f"{self._base_url}/api/operator/{path}", self._bearer, json=body)
