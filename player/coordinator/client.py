"""The coordinator as an operator sees it: a method for all it asks of it.

The one rule kept here: the API key is exchanged for tokens and goes nowhere else: it is in no request but the login, in
no error, and not shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, TypeVar

import requests

from player.coordinator.batches import MOST_PAYOUTS, slices, ticket_batches
from player.coordinator.errors import Unauthorized, Unreadable
from player.coordinator.manifests import make_manifest
from player.coordinator.patience import Patience
from player.coordinator.public import PublicReads
from player.coordinator.reading import read, read_list
from player.coordinator.shapes import (
    Balance,
    Checked,
    Heartbeat,
    InvitedRound,
    LoggedDelivery,
    ManifestAccepted,
    OwnRound,
    Profile,
    Reported,
    Submitted,
    TestedDelivery,
    Win,
)
from player.coordinator.tokens import Tokens
from player.coordinator.transport import Ask, Transport, path_of
from protocol.tickets import Ticket

_T = TypeVar("_T")
_WEBHOOK_SECONDS = 45.0
"""How long a sample webhook may take: the receiver has 30 seconds."""


class Coordinator(PublicReads):
    """A client of one coordinator. Threads may share it; use it as a context manager, or `close` it, to log out.

    `api_key` may be left out by who reads public things or applies. `timeout`: seconds for one attempt, of which there
    are up to `attempts` within `patience` seconds. `clock` (seconds that only grow) and `sleep` are for tests.

    Every method raises `CoordinatorError`, as `errors` says.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        *,
        timeout: float = 30.0,
        attempts: int = 6,
        patience: float = 120.0,
        session: requests.Session | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(Transport(base_url, Patience(timeout, attempts, patience), session, clock, sleep))
        self._tokens = Tokens(self._transport, api_key)
        self._operator_id: str | None = None

    def __repr__(self) -> str:
        return f"Coordinator({self.base_url!r}, operator_id={self._operator_id!r})"

    def __enter__(self) -> Coordinator:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Log out, as far as the coordinator can be reached, and close the connections."""
        self._tokens.end()
        self._transport.close()

    def use_key(self, api_key: str) -> None:
        """Go on with a new API key of the same operator."""
        self._tokens.use_key(api_key)

    @property
    def base_url(self) -> str:
        """The coordinator's address."""
        return self._transport.base_url

    @property
    def operator_id(self) -> str:
        """Who the API key stands for; asked once."""
        if self._operator_id is None:
            self._operator_id = self.me().operator_id
        return self._operator_id

    def me(self) -> Profile:
        """The operator's own profile."""
        return self._own(Profile, Ask("GET", path_of("operator", "me")))

    def balance(self) -> Balance:
        """The operator's money."""
        return self._own(Balance, Ask("GET", path_of("operator", "balance")))

    def heartbeat(self) -> Heartbeat:
        """Say that the operator is alive; once a minute is right."""
        return self._own(Heartbeat, Ask("POST", path_of("operator", "heartbeat")))

    def rounds(self) -> tuple[InvitedRound, ...]:
        """The rounds the operator is invited to, newest first (the last 200)."""
        ask = Ask("GET", path_of("operator", "rounds"))
        return read_list(InvitedRound, "rounds", self._send(ask), str(ask))

    def round(self, round_id: int) -> OwnRound:
        """A round from the operator's side: its deadlines, and what is on record of the operator's part.

        :raises Forbidden: `not_invited`.
        """
        return self._own(OwnRound, Ask("GET", path_of("operator", "rounds", round_id)))

    def submit_tickets(
        self, round_id: int, tickets: Iterable[Ticket], progress: Callable[[int], None] | None = None
    ) -> Submitted:
        """Put tickets on record, in batches; `progress` hears how many tickets each accepted batch had.

        A batch is taken whole or not at all, and counts once however often it is sent: after an error call this again
        with the same tickets, or with those after the last batch that `progress` heard of.

        :raises Conflict: `sales_ended`, `manifest_submitted`, `ticket_conflict`: an id is there with other numbers.
        :raises Invalid: `details` names the first 100 faults by their index in the batch.
        """
        sent = batches = 0
        for batch in ticket_batches(round_id, tickets):
            ask = Ask("POST", path_of("operator", "tickets"), batch.body, {"Content-Encoding": "gzip"})
            accepted = self._field(ask, "ticketsAccepted")
            if accepted != batch.tickets:
                raise Unreadable(
                    str(ask), f"{accepted} of {batch.tickets} tickets were accepted, instead of all or none"
                )
            sent, batches = sent + batch.tickets, batches + 1
            if progress is not None:
                progress(batch.tickets)
        return Submitted(round_id, sent, batches)

    def submit_manifest(
        self, round_id: int, tickets_root: str, ticket_count: int, nonce_commit: str | None = None
    ) -> ManifestAccepted:
        """Seal the operator's tickets: after it none can be added. The same one again changes nothing.

        Store a nonce before you commit to it (`protocol.seed.nonce_commit`).

        :raises Conflict: `sales_ended`, or `manifest_conflict`: another one is on record.
        :raises Invalid: `manifest_mismatch`: it does not fit the tickets on record.
        """
        made = make_manifest(round_id, self.operator_id, tickets_root, ticket_count, nonce_commit)
        body = {
            "roundId": round_id,
            "manifestJson": made.json,
            "manifestHash": made.hash,
            "ticketCount": ticket_count,
        }
        return self._own(ManifestAccepted, Ask("POST", path_of("operator", "manifest"), body))

    def reveal_nonce(self, round_id: int, nonce: bytes) -> None:
        """Reveal the 32 bytes that the manifest committed to, between SEALED and the draw.

        :raises Conflict: `wrong_state`: too early or too late.
        """
        self._send(Ask("POST", path_of("operator", "nonce"), {"roundId": round_id, "nonce": nonce.hex()}))

    def check_tickets(self, round_id: int) -> Checked:
        """The operator's winning tickets.

        :raises Conflict: `not_drawn`.
        """
        ask = Ask("POST", path_of("operator", "check-tickets"), {"roundId": round_id})
        told = self._send(ask)
        try:
            tiers = {0: told["jackpotWinners"], **{each["tier"]: each["winners"] for each in told["bonusTiers"]}}
            wins = [Win(int(tier), str(row["ticketId"])) for tier, rows in tiers.items() for row in rows]
        except (TypeError, LookupError, ValueError, OverflowError) as problem:
            raise Unreadable(str(ask), f"the answer names no winners as it should ({problem})") from None
        return Checked(round_id, tuple(wins))

    def report_payouts(
        self, round_id: int, paid: Iterable[Win], progress: Callable[[int], None] | None = None
    ) -> Reported:
        """Say which prizes were paid to players, in reports of 10,000; `progress` hears how many each had.

        A prize counts once however often it is reported. One whose first report was answered too late for us to hear it
        is among `already_claimed`.

        :raises Conflict: `not_settled`.
        :raises Invalid: one was not won, or is named twice; nothing of that report was counted.
        """
        total = Reported(0, 0, 0)
        for report in slices(paid, MOST_PAYOUTS):
            payouts = [{"ticketId": win.ticket_id, "tier": win.tier} for win in report]
            ask = Ask("POST", path_of("operator", "payouts"), {"roundId": round_id, "payouts": payouts})
            one = self._own(Reported, ask)
            total = Reported(
                total.accepted + one.accepted, total.already_claimed + one.already_claimed, total.late + one.late
            )
            if progress is not None:
                progress(len(report))
        return total

    def set_webhook(self, url: str) -> None:
        """Say where events are to be sent.

        :raises Invalid: the address is not one that is called; `details` says why.
        """
        self._send(Ask("PUT", path_of("operator", "webhook"), {"url": url}))

    def test_webhook(self, event: str) -> TestedDelivery:
        """Have a sample of one event sent (sandbox only), and wait for what the receiver makes of it.

        :raises Conflict: `no_webhook`.
        :raises NotFound: this is no sandbox.
        """
        ask = Ask("POST", path_of("operator", "test-webhook"), {"eventType": event}, seconds=_WEBHOOK_SECONDS)
        return read(TestedDelivery, self._field(ask, "delivery"), str(ask))

    def test_all_webhooks(self) -> tuple[TestedDelivery, ...]:
        """The same with a sample of every event there is."""
        ask = Ask("POST", path_of("operator", "test-webhook", "all"), seconds=_WEBHOOK_SECONDS)
        return read_list(TestedDelivery, "deliveries", self._send(ask), str(ask))

    def webhook_logs(self, limit: int = 50, offset: int = 0) -> tuple[LoggedDelivery, ...]:
        """What was sent to the operator lately, newest first (sandbox only); `limit`: 1 to 200."""
        ask = Ask("GET", path_of("operator", "webhook-logs"), query={"limit": limit, "offset": offset})
        return read_list(LoggedDelivery, "logs", self._send(ask), str(ask))

    def _own(self, kind: type[_T], ask: Ask) -> _T:
        return read(kind, self._send(ask), str(ask))

    def _field(self, ask: Ask, name: str) -> Any:
        answer = self._send(ask)
        if not isinstance(answer, dict) or name not in answer:
            raise Unreadable(str(ask), f"the answer has no {name}")
        return answer[name]

    def _send(self, ask: Ask) -> Any:
        """Ask as the operator. A token that is refused is replaced, once."""
        give_up = self._transport.give_up_at()
        token = self._tokens.current(give_up)
        try:
            return self._transport.send(ask, token, give_up)
        except Unauthorized:
            return self._transport.send(ask, self._tokens.instead_of(token, give_up), give_up)
