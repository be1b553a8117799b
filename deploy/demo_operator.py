"""A simulated operator: everything a licensed company does in a round, over HTTP and from outside.

One rule: it knows the coordinator's address and its own keys, and nothing else of ours but the published rules
(`protocol`) and the client that any operator may use (`player.coordinator`).
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Mapping

from player.coordinator import Application, Coordinator, Ticket, Win, nonce_commit, tickets_root
from protocol.prizes import TIERS

_AGAIN = 5_000
_RANGES = [tier.range for tier in TIERS]
LABELS = ("jackpotNumber", *(f"bonus{tier.number}" for tier in TIERS))


class SimulatedOperator:
    """One company, from its application to its winners. `numbers` makes its tickets."""

    def __init__(self, base_url: str, name: str, numbers: random.Random) -> None:
        self.name = name
        self.api_key = ""
        self.tickets: list[Ticket] = []
        self.coordinator = Coordinator(base_url)
        self._numbers = numbers
        self._nonce = secrets.token_bytes(32)

    @property
    def operator_id(self) -> str:
        """Who it is, as its key says."""
        return self.coordinator.operator_id

    def application(self) -> Application:
        """What it writes to become an operator."""
        return Application(
            company_name=self.name,
            jurisdiction="Malta",
            gaming_license_number=f"DEMO-{secrets.token_hex(4)}",
            contact_email=f"{self.name.lower().replace(' ', '.')}@example.com",
            contact_name="Demo Contact",
            ethereum_address=f"0x{secrets.token_hex(20)}",
        )

    def take_key(self, api_key: str) -> None:
        """Go on with the API key that came with the approval; who it stands for is asked of the coordinator."""
        self.api_key = api_key
        self.coordinator.use_key(api_key)

    def sell(self, count: int, odds_range: int) -> None:
        """Make up tickets; ids in the order of sale, so not in the order in which they are hashed."""
        pick = self._numbers.randint
        word = self.name.split()[-1].lower()
        first, second, third, fourth, fifth = _RANGES
        for place in range(count):
            numbers = (
                pick(1, odds_range),
                pick(1, first),
                pick(1, second),
                pick(1, third),
                pick(1, fourth),
                pick(1, fifth),
            )
            self.tickets.append(Ticket(f"{word}-{place}", numbers, pick(0, 1) == 1))

    def submit(self, round_id: int, submitted: Callable[[int], None]) -> None:
        """Submit the tickets. `submitted` hears of each batch's size.

        The first of them go twice, as they would after a lost answer: that must change nothing.
        """
        self.coordinator.submit_tickets(round_id, self.tickets[:_AGAIN])
        self.coordinator.submit_tickets(round_id, self.tickets, submitted)

    def seal(self, round_id: int) -> None:
        """Submit the manifest: the tickets' count and Merkle root, and a commitment to a nonce."""
        root = tickets_root(round_id, self.operator_id, self.tickets)
        commitment = nonce_commit(round_id, self.operator_id, self._nonce)
        self.coordinator.submit_manifest(round_id, root, len(self.tickets), commitment)

    def reveal(self, round_id: int) -> None:
        """Reveal the nonce, so that nobody could have known the draw's seed before."""
        self.coordinator.reveal_nonce(round_id, self._nonce)

    def winners_in_its_books(self, numbers: Mapping[str, int]) -> set[Win]:
        """Its winning tickets, found among those it sold with the numbers drawn."""
        return {
            Win(tier, ticket.ticket_id)
            for tier, label in enumerate(LABELS)
            for ticket in self.tickets
            if ticket.numbers[tier] == numbers[label]
        }
