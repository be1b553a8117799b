"""The winning tickets of a round, each with its prize, under one root.

The rule: a win is a ticket in a tier. A ticket that wins in two tiers is two winners, and the list is always
in order of tier, operator and ticket.

Implements docs/protocol.md, section 7 (settlement).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from protocol import merkle
from protocol.prizes import TIERS

TIER_COUNT = 1 + len(TIERS)
"""Tier 0, the jackpot, and the five sub-prizes."""


@dataclass(frozen=True)
class Winner:
    """A winning ticket of a tier (0 = jackpot, 1 to 5) and its prize in micro-USDC; a ticket may win in
    several tiers.
    """

    tier: int
    operator_id: str
    ticket_id: str
    prize: int


def winner_leaf(round_id: int, tier: int, operator_id: str, ticket_id: str, prize: int) -> bytes:
    """The preimage of a winner's leaf: its canonical JSON (docs/protocol.md, section 7). The ids must be
    identifiers.

    Built from a template, since a round may have very many winners.
    """
    return (
        f'{{"operatorId":"{operator_id}","prizeAmount":"{prize}","roundId":{round_id},'
        f'"ticketId":"{ticket_id}","tier":{tier}}}'
    ).encode("ascii")


def winners_root(round_id: int, winners: Iterable[Winner]) -> str:
    """`winnersRoot`, 64 hex digits, over winners in any order, sorted here by tier, operator, ticket."""
    # Identifiers are ASCII, so their order by characters is their order by bytes.
    ordered = sorted(winners, key=lambda winner: (winner.tier, winner.operator_id, winner.ticket_id))
    leaves = (
        merkle.leaf_hash(winner_leaf(round_id, winner.tier, winner.operator_id, winner.ticket_id, winner.prize))
        for winner in ordered
    )
    return merkle.root(leaves).hex()
