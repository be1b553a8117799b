"""What the coordinator answers an operator about itself and its rounds, as values.

The one rule kept here: nothing is interpreted. Fields are the published ones (see `reading`); amounts are `Micro`,
times are aware datetimes in UTC, and what is not known yet is None.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from player.coordinator.reading import Micro


class Win(NamedTuple):
    """A prize: the tier (0: the jackpot, 1 to 5: bonus1 to bonus5) and the ticket that won it."""

    tier: int
    ticket_id: str


@dataclass(frozen=True)
class Profile:
    """The operator itself. `reputation_score`: 0 to 100."""

    operator_id: str
    name: str
    jurisdiction: str
    active: bool
    reputation_score: int
    total_rounds_participated: int
    total_rounds_won: int
    total_rounds_escrowed: int
    total_rounds_excluded: int
    total_payouts_on_time: int
    total_payouts_late: int
    registered_at: datetime
    address: str
    webhook_url: str | None
    last_heartbeat: datetime | None


@dataclass(frozen=True)
class Balance:
    """The operator's money: what the next escrow can be taken from (negative when it owes), and what rounds hold."""

    operator_id: str
    balance_usdc: Micro
    in_escrow_usdc: Micro


@dataclass(frozen=True)
class InvitedRound:
    """A round in the list of those the operator is invited to. `state`: see `protocol.lifecycle.State`."""

    id: int
    state: str
    ticket_price_usdc: Micro
    odds_range: int
    total_tickets: int
    operator_ids: tuple[str, ...]
    scheduled_draw_time: datetime


@dataclass(frozen=True)
class Escrow:
    """What the operator's tickets of a round need, None when it is out of it before; and what was taken for them."""

    required_usdc: Micro | None
    deposited_usdc: Micro | None


@dataclass(frozen=True)
class OwnRound:
    """A round from the operator's side. `ticket_count`: its own tickets on record. `tickets_root`: once sealed.

    `claim_deadline`: once SETTLED, if anybody won.
    """

    id: int
    state: str
    ticket_price_usdc: Micro
    odds_range: int
    rules_hash: str
    seal_at: datetime
    sealing_deadline: datetime
    escrow_deadline: datetime
    scheduled_draw_time: datetime
    settle_at: datetime
    close_at: datetime
    claim_deadline: datetime | None
    failure_reason: str | None
    ticket_count: int
    manifest_hash: str | None
    tickets_root: str | None
    nonce_committed: bool
    nonce_revealed: bool
    escrow: Escrow
    excluded_reason: str | None


@dataclass(frozen=True)
class Submitted:
    """What was sent: so many tickets, all of them on record now, in so many batches."""

    round_id: int
    tickets: int
    batches: int


@dataclass(frozen=True)
class ManifestAccepted:
    """The manifest is on record; `sealed_count` of `total_invited` operators have submitted theirs."""

    round_id: int
    state: str
    sealed_count: int
    total_invited: int


@dataclass(frozen=True)
class Checked:
    """The operator's winning tickets in a drawn round, tier by tier. A ticket may win in several."""

    round_id: int
    wins: tuple[Win, ...]


@dataclass(frozen=True)
class Reported:
    """What a report of payouts changed: prizes now claimed, `late` of them, and those that were claimed before."""

    accepted: int
    already_claimed: int
    late: int


@dataclass(frozen=True)
class Heartbeat:
    """The heartbeat was counted."""

    operator_id: str
    timestamp: datetime


@dataclass(frozen=True)
class TestedDelivery:
    """What came of a sample webhook. `status_code`: the receiver's last answer; None when there was none."""

    __test__ = False  # not a test, whatever pytest thinks

    event: str
    status: str
    status_code: int | None

    @property
    def delivered(self) -> bool:
        """Whether the receiver took it."""
        return self.status == "delivered"


@dataclass(frozen=True)
class LoggedAttempt:
    """One attempt at a delivery. `status_code` is None when no answer came; then `error_class` says why."""

    number: int
    started_at: datetime
    duration_ms: int
    url: str
    status_code: int | None
    error_class: str | None
    detail: str | None
    response_body: str | None


@dataclass(frozen=True)
class LoggedDelivery:
    """A webhook that was sent, or is to be: `delivery_id` is its X-Service-Delivery header."""

    delivery_id: str
    event: str
    round_id: int | None
    status: str
    created_at: datetime
    next_attempt_at: datetime | None
    attempts: tuple[LoggedAttempt, ...]
