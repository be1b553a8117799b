"""The winners of a round under one root."""

from __future__ import annotations

import random
from hashlib import sha256

import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from protocol import merkle
from protocol.winners import Winner, winner_leaf, winners_root

IDENTIFIERS = st.text("ABCXYZabcxyz0189._:-", min_size=1, max_size=64)
WINNERS = [
    Winner(0, "opB", "t-1", 500),
    Winner(2, "opA", "t-9", 300),
    Winner(5, "opA", "t-10", 7),
    Winner(5, "opA", "t-9", 7),
    Winner(5, "opB", "t-1", 7),
]


@given(st.integers(1, 2**53 - 1), st.integers(0, 5), IDENTIFIERS, IDENTIFIERS, st.integers(0, 10**20))
def test_the_leaf_made_from_a_template_is_rfc_8785_canonical_json(
    round_id: int, tier: int, operator_id: str, ticket_id: str, prize: int
) -> None:
    expected = rfc8785.dumps(
        {
            "operatorId": operator_id,
            "prizeAmount": str(prize),
            "roundId": round_id,
            "ticketId": ticket_id,
            "tier": tier,
        }
    )
    assert winner_leaf(round_id, tier, operator_id, ticket_id, prize) == expected


def test_the_root_is_over_winners_by_tier_operator_and_ticket_whatever_their_order() -> None:
    leaves = [merkle.leaf_hash(winner_leaf(7, row.tier, row.operator_id, row.ticket_id, row.prize)) for row in WINNERS]
    shuffled = random.Random(1).sample(WINNERS, len(WINNERS))
    assert winners_root(7, shuffled) == winners_root(7, iter(WINNERS)) == merkle.root(leaves).hex()
    assert winners_root(8, WINNERS) != winners_root(7, WINNERS)


def test_a_round_without_winners_has_the_empty_root() -> None:
    assert winners_root(7, []) == sha256(b"").hexdigest()
