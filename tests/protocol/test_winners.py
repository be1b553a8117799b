"""The winners of a round under one root."""

from __future__ import annotations

import random
import tracemalloc
from hashlib import sha256

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from protocol import merkle
from protocol.winners import Winner, winner_leaf, winners_root, winners_root_in_order

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


def test_winners_that_come_in_order_have_the_same_root_and_are_not_kept() -> None:
    assert winners_root_in_order(7, iter(WINNERS)) == winners_root(7, WINNERS)
    many = (Winner(5, "opA", f"t-{place:06}", 7) for place in range(20_000))
    tracemalloc.start()
    winners_root_in_order(7, many)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20  # all of them would be some five times as much


@pytest.mark.parametrize("winners", [WINNERS[::-1], [WINNERS[0], *WINNERS]])
def test_winners_out_of_order_or_twice_are_refused_where_order_is_promised(winners: list[Winner]) -> None:
    with pytest.raises(ValueError, match="does not come after"):
        winners_root_in_order(7, winners)
