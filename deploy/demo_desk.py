"""The licensor's desk in the demo: what its staff does, with an admin key over HTTP.

One rule: it does what only staff can do. Whatever an operator can do or anybody can read is done by operators.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deploy.coordinator import here
from deploy.failure import Failure

_SECONDS = 30


class Desk:
    """The staff of a coordinator, by an admin key that may do everything."""

    def __init__(self, base_url: str, admin_key: str) -> None:
        self._base_url = base_url
        self._headers = {"X-Service-Admin-Key": admin_key}

    def approve(self, application_id: str) -> str:
        """Approve an application; returns the operator's API key."""
        note = {"reviewNote": "license checked"}
        return str(self._call("POST", f"applications/{application_id}/approve", note)["apiKey"])

    def record_deposit(self, operator_id: str, amount: int, reference: str) -> None:
        """Record so many micro-USDC that an operator sent."""
        self._call("POST", f"operators/{operator_id}/deposits", {"amountUsdc": str(amount), "reference": reference})

    def open_round(self, deadlines: Mapping[str, str]) -> dict[str, Any]:
        """Open a round for every operator."""
        return self._call("POST", "rounds", deadlines)

    def round(self, round_id: int) -> dict[str, Any]:
        """A round with its timeline, deadlines and deliveries."""
        return self._call("GET", f"rounds/{round_id}")

    def _call(self, method: str, path: str, body: Mapping[str, str] | None = None) -> dict[str, Any]:
        url = f"{self._base_url}/api/admin/{path}"
        try:
            response = here.request(method, url, json=body, headers=self._headers, timeout=_SECONDS)
        except OSError as error:  # every error of requests is one
            raise Failure(f"{method} {url}: {type(error).__name__}") from None
        if not response.ok:
            raise Failure(f"{method} {url}: {response.status_code} {response.text.strip()[:300]}")
        answer: dict[str, Any] = response.json()
        return answer
