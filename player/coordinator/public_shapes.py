"""What the coordinator publishes for everybody, as values.

The one rule kept here: as in `shapes`, nothing is interpreted; the one exception is a proof, which can be checked.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from player.coordinator.reading import Micro
from protocol.errors import Invalid
from protocol.merkle import leaf_hash, read_path, verify_inclusion


@dataclass(frozen=True)
class PublicRound:
    """A round as everybody sees it. Numbers and winners are None until it is drawn, hashes until it is sealed."""

    id: int
    state: str
    ticket_price_usdc: Micro
    odds_range: int
    total_tickets: int
    operator_count: int
    escrowed_operator_count: int
    excluded_operator_count: int
    operator_ids: tuple[str, ...]
    escrowed_operator_ids: tuple[str, ...]
    excluded_operator_ids: tuple[str, ...]
    jackpot_won: bool
    jackpot_winner_count: int
    jackpot_amount: Micro | None
    sub_prize_total_usdc: Micro | None
    total_deposited: Micro
    created_at: datetime
    scheduled_draw_time: datetime
    seed_commit: str
    rules_hash: str
    full_manifest_hash: str | None
    effective_manifest_hash: str | None
    chained_anchor_hash: str | None
    previous_round_hash: str | None
    settlement_hash: str | None
    draw_seed: str | None
    jackpot_number: int | None
    bonus1: int | None
    bonus2: int | None
    bonus3: int | None
    bonus4: int | None
    bonus5: int | None
    worst_case_usdc: Micro | None
    available_for_prizes_usdc: Micro | None
    failure_reason: str | None


@dataclass(frozen=True)
class Draw:
    """A draw: its seed, and the six numbers that follow from it."""

    draw_id: str
    round_id: int
    draw_seed: str
    jackpot_number: int
    bonus1: int
    bonus2: int
    bonus3: int
    bonus4: int
    bonus5: int
    jackpot_won: bool
    jackpot_winner_count: int
    jackpot_amount: Micro
    created_at: datetime

    @property
    def numbers(self) -> tuple[int, int, int, int, int, int]:
        """The six numbers in tier order: jackpot, bonus1 to bonus5."""
        return (self.jackpot_number, self.bonus1, self.bonus2, self.bonus3, self.bonus4, self.bonus5)


@dataclass(frozen=True)
class Winner:
    """A sub-prize: who sold the ticket, what it is paid, and whether it was claimed in time."""

    operator_id: str
    ticket_id: str
    prize_amount: Micro
    claimed: bool


@dataclass(frozen=True)
class WinnersOfTier:
    """One page of a tier's winners; `count` is of all of them."""

    tier: int
    winners: tuple[Winner, ...]
    count: int


@dataclass(frozen=True)
class Winners:
    """Who won the sub-prizes of a draw, tier by tier from 1 to 5."""

    draw_id: str
    round_id: int
    jackpot_won: bool
    jackpot_winner_count: int
    jackpot_amount: Micro
    sub_prize_tiers: tuple[WinnersOfTier, ...]
    total_sub_prize_winners: int


@dataclass(frozen=True)
class TierPayout:
    """What a tier's winning tickets, `winner_count` of them in all, are paid together."""

    tier: int
    winner_count: int
    total_payout: Micro

    @property
    def each(self) -> int:
        """What one of them is paid, micro-USDC; 0 without any."""
        return self.total_payout // self.winner_count if self.winner_count else 0


@dataclass(frozen=True)
class Jackpot:
    """The jackpot now. `next_draw_time` and `next_draw_round_id` are None while no round is on."""

    jackpot: Micro
    draws_since_last_win: int
    last_win_round_id: int | None
    current_odds_range: int
    next_draw_time: datetime | None
    next_draw_round_id: int | None
    ticket_price: Micro
    updated_at: datetime


@dataclass(frozen=True)
class Odds:
    """The odds of the jackpot: 1 in `current_odds_range`, and the same in words."""

    current_odds_range: int
    current_odds: str


@dataclass(frozen=True)
class RoundEvent:
    """An entry of a round's public log."""

    type: str
    round_id: int
    timestamp: datetime
    data: dict[str, Any]


@dataclass(frozen=True)
class InclusionProof:
    """The way from one ticket up to its operator's `tickets_root`. `line` is None until the round is drawn."""

    round_id: int
    operator_id: str
    ticket_id: str
    line: str | None
    leaf_hash: str
    leaf_index: int
    tree_size: int
    audit_path: str
    tickets_root: str
    full_manifest_hash: str

    def holds(self, line: bytes, tickets_root: str) -> bool:
        """Whether the ticket with this line (`protocol.tickets.Ticket.line`) is under this root, which you know."""
        try:
            path, root = read_path(self.audit_path), bytes.fromhex(tickets_root)
        except (ValueError, Invalid):
            return False
        return verify_inclusion(leaf_hash(line), self.leaf_index, self.tree_size, path, root)


@dataclass(frozen=True)
class Application:
    """What a company writes when it applies. `ethereum_address`: 0x and 40 hex digits."""

    company_name: str
    jurisdiction: str
    gaming_license_number: str
    contact_email: str
    contact_name: str
    ethereum_address: str
    website: str | None = None
    description: str | None = None

    def as_sent(self) -> dict[str, str | None]:
        """The form as it goes over the wire."""
        return {
            "companyName": self.company_name,
            "jurisdiction": self.jurisdiction,
            "gamingLicenseNumber": self.gaming_license_number,
            "contactEmail": self.contact_email,
            "contactName": self.contact_name,
            "ethereumAddress": self.ethereum_address,
            "website": self.website,
            "description": self.description,
        }


@dataclass(frozen=True)
class Applied:
    """The application is on record. Keep the token: nobody shows it again."""

    application_id: str
    application_token: str = field(repr=False)
    status: str


@dataclass(frozen=True)
class ApplicationStatus:
    """What became of an application. `operator_id` once it is approved; the API key comes from the licensor's staff."""

    application_id: str
    company_name: str
    status: str
    submitted_at: datetime
    reviewed_at: datetime | None
    review_note: str | None
    operator_id: str | None = None
