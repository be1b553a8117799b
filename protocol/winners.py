"""The winning tickets of a round, each with its prize, under one root.

The rule: a win is a ticket in a tier. A ticket that wins in two tiers is two winners, and the list is always
in order of tier, operator and ticket.

Implements docs/protocol.md, section 7 (settlement).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
    return _root(round_id, sorted(winners, key=_place))


def winners_root_in_order(round_id: int, winners: Iterable[Winner]) -> str:
    """The same over winners that come by tier, operator and ticket already. Reads them once and keeps none: of a round
    of a billion tickets there are eleven million.

    Raises ValueError for winners in any other order, or one that comes twice.
    """
    return _root(round_id, _in_order(winners))


def _root(round_id: int, winners: Iterable[Winner]) -> str:
    leaves = (
        winner_leaf(round_id, winner.tier, winner.operator_id, winner.ticket_id, winner.prize) for winner in winners
    )
    return merkle.root(map(merkle.leaf_hash, leaves)).hex()


def _in_order(winners: Iterable[Winner]) -> Iterator[Winner]:
    before: tuple[int, str, str] | None = None
    for winner in winners:
        place = _place(winner)
        if before is not None and place <= before:
            raise ValueError(f"winner {place} does not come after {before}")
        before = place
        yield winner


def _place(winner: Winner) -> tuple[int, str, str]:
    # Identifiers are ASCII, so their order by characters is their order by bytes.
    return winner.tier, winner.operator_id, winner.ticket_id
