"""A player of the full demo: what she does over HTTP, and her own account of it.

One rule: what she believes to have is reckoned from what she did and what was drawn, never from what the node says
that she has.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import requests

from deploy.failure import Failure
from protocol.numbers import LABELS, tiers_won

PRICE = 3_000_000
_PATIENCE = 60.0
_TILL_PAID_OUT = 200.0
"""A worker that is killed while it has a withdrawal out is followed by another one when its lease of 60 s is over."""
_AGAIN = 0.25
_NAMES = ("jackpotNumber", *LABELS[1:])
Numbers = tuple[int, int, int, int, int, int]


class PlayerFailure(Failure):
    """A player was treated otherwise than she should have been."""


@dataclass
class Player:
    """One player of the node at `url`. Money is micro-USDC."""

    url: str
    name: str
    deposited: int = 0
    withdrawn: int = 0
    tickets: dict[str, Numbers] = field(default_factory=dict)
    won: dict[tuple[str, int], int] = field(default_factory=dict)
    _token: str = ""
    _keys: int = 0
    _http: requests.Session = field(default_factory=requests.Session)

    @property
    def balance(self) -> int:
        """What she must have now."""
        return self.deposited - len(self.tickets) * PRICE + sum(self.won.values()) - self.withdrawn

    def register(self) -> None:
        """Open an account. If the answer is lost, the account is there all the same."""
        self._http.trust_env = False
        known = {"email": f"{self.name}@example.com", "password": f"a long password of {self.name}"}
        status, answer = self._ask("POST", "/api/auth/register", {**known, "displayName": self.name})
        if status == 409:
            status, answer = self._ask("POST", "/api/auth/login", known)
        self._expect(status in (200, 201), "register", answer)
        self._token = str(answer["tokens"]["accessToken"])

    def deposit(self, amount: int) -> None:
        """Pay in through the sandbox's form, and wait until it is there."""
        status, answer = self._ask("POST", "/api/player/deposits", {"amount": str(amount)}, once=True)
        self._expect(status == 201, "deposit", answer)
        page = str(answer["payment"]["redirectUrl"])
        self._send("POST", page, data={"outcome": "completed"})
        self.deposited += amount
        self.wait_for(lambda: self.shown_balance() == self.balance, "the deposit does not come in")

    def limit_to(self, tickets: int) -> None:
        """Allow herself so many tickets a day."""
        status, answer = self._ask("POST", "/api/player/limits", {"dailyLimit": str(tickets * PRICE)})
        self._expect(status == 200, "limits", answer)

    def exclude_herself(self) -> None:
        """Not to play for a week."""
        status, answer = self._ask("POST", "/api/player/self-exclusion", {"durationDays": 7})
        self._expect(status == 200, "self-exclusion", answer)

    def sees_a_round(self) -> bool:
        """Whether the node shows her a round on sale."""
        status, _ = self._ask("GET", "/api/rounds/current")
        return status == 200

    def buy(self, numbers: Numbers) -> bool:
        """Buy one ticket; False when sales are over."""
        code = self._purchase(numbers)
        self._expect(code in (None, "sales_closed", "no_open_round"), "purchase", code)
        return code is None

    def is_refused(self, numbers: Numbers, why: str) -> None:
        """Try to buy one, and be refused with this code."""
        code = self._purchase(numbers)
        self._expect(code in (why, "sales_closed", "no_open_round"), f"purchase that must be {why}", code)

    def reckon(self, drawn: Sequence[int], pays: Mapping[int, int]) -> dict[tuple[str, int], int]:
        """What her tickets won, by ticket and tier: of the drawn numbers and what each tier pays."""
        return {
            (ticket_id, tier): pays[tier]
            for ticket_id, numbers in self.tickets.items()
            for tier in tiers_won(numbers, drawn)  # type: ignore[arg-type]
        }

    def claim(self, expected: Mapping[tuple[str, int], int]) -> None:
        """Wait for the prizes that she reckons with, claim every one, and be paid no other."""
        self.wait_for(lambda: len(self._prizes()) >= len(expected), "prizes do not appear", 120.0)
        for prize in self._prizes():
            what, amount = (prize["ticketId"], prize["tier"]), int(prize["amount"])
            self._expect(expected.get(what) == amount, f"prize {what}", amount)
            status, answer = self._ask("POST", f"/api/player/prizes/{prize['id']}/claim", once=True)
            self._expect(status == 200, "claim", answer)
            self.won[what] = amount
        self._expect(self.won == dict(expected), "prizes", f"{len(self.won)} of {len(expected)}")

    def withdraw(self, amount: int) -> None:
        """Have money paid out, and wait until it was."""
        wanted = {"amount": str(amount), "destination": f"bank of {self.name}"}
        status, answer = self._ask("POST", "/api/player/withdrawals", wanted, once=True)
        self._expect(status == 201, "withdrawal", answer)
        self.withdrawn += amount
        path = f"/api/player/withdrawals/{answer['payment']['id']}"
        self.wait_for(
            lambda: self._get(path)["status"] == "completed", "the withdrawal is not paid out", _TILL_PAID_OUT
        )

    def shown_balance(self) -> int:
        """What the node says that she has."""
        return int(self._get("/api/player/balance")["balance"])

    def statement(self) -> list[dict[str, Any]]:
        """Every line of her statement."""
        lines: list[dict[str, Any]] = []
        while True:
            page = self._get(f"/api/player/transactions?limit=200&offset={len(lines)}")["transactions"]
            lines += page
            if len(page) < 200:
                return lines

    def wait_for(self, condition: Any, otherwise: str, seconds: float = _PATIENCE) -> None:
        """Look until it is so."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise PlayerFailure(f"{self.name}: {otherwise}")
            time.sleep(_AGAIN)

    def _purchase(self, numbers: Numbers) -> str | None:
        wanted = {**dict(zip(_NAMES, numbers, strict=True)), "isQuickPick": True}
        status, answer = self._ask("POST", "/api/player/tickets/purchase", wanted, once=True)
        if status == 201:
            self.tickets[str(answer["ticket"]["ticketId"])] = numbers
            return None
        return str(answer.get("code"))

    def _prizes(self) -> list[dict[str, Any]]:
        prizes: list[dict[str, Any]] = self._get("/api/player/prizes?limit=200")["prizes"]
        return prizes

    def _get(self, path: str) -> dict[str, Any]:
        status, answer = self._ask("GET", path)
        self._expect(status == 200, path, answer)
        return answer

    def _ask(self, method: str, path: str, body: Any = None, once: bool = False) -> tuple[int, dict[str, Any]]:
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        if once:
            # The node may die before it answers: sent again under the same key, it is done once.
            self._keys += 1
            headers["Idempotency-Key"] = f"{self.name}-{self._keys}"
        answer = self._send(method, self.url + path, json=body, headers=headers)
        return answer.status_code, answer.json()

    def _send(self, method: str, url: str, **what: Any) -> requests.Response:
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                answer = self._http.request(method, url, timeout=20, **what)
                if answer.status_code < 500:
                    return answer
                problem = f"{answer.status_code} {answer.text[:200]}"
            except requests.RequestException as error:
                problem = type(error).__name__
            if time.monotonic() > deadline:
                raise PlayerFailure(f"{self.name}: {method} {url.partition('?')[0]}: {problem}")
            time.sleep(_AGAIN)

    def _expect(self, held: bool, what: str, instead: Any) -> None:
        if not held:
            raise PlayerFailure(f"{self.name}: {what}: {str(instead)[:300]}")
