"""One round from the operator's side, with a real coordinator on the other end of the wire."""

from __future__ import annotations

import pytest

from tests.player.coordinating import (
    PRICE,
    Side,
    claim_all,
    end_sales,
    learn,
    look,
    rows,
    sell_some,
    the_round,
)

pytestmark = pytest.mark.usefixtures("generous")


def test_a_round_is_sold_sealed_drawn_and_paid(side: Side) -> None:
    round_id = side.open_round()
    learn()
    sell_some(round_id, 40)
    assert look(round_id) == "selling"
    assert side.rows("SELECT count(*) FROM tickets") == [(40,)]
    sell_some(round_id, 20, seed=2)
    end_sales(round_id)
    assert look(round_id) == "bound"
    assert side.rows("SELECT ticket_count, nonce_commit IS NOT NULL FROM manifests") == [(60, True)]
    side.take_to(round_id, "ESCROWED")
    assert look(round_id) == "revealed"
    side.take_to(round_id, "DRAWN")
    assert side.rows("SELECT nonce_revealed_at IS NOT NULL FROM participations") == [(True,)]
    assert look(round_id) == "checked"
    won = rows("SELECT count(*) FROM prizes")[0][0]
    assert won
    assert won == side.rows("SELECT count(*) FROM winners")[0][0]
    assert rows("SELECT count(*) FROM prizes WHERE amount IS NOT NULL") == [(0,)]
    side.take_to(round_id, "SETTLED")
    assert look(round_id) == "payable"
    assert sorted(rows("SELECT p.tier, t.ticket_id, p.amount FROM prizes p JOIN tickets t ON t.id = p.ticket")) == (
        sorted(side.rows("SELECT tier, ticket_id, prize_usdc FROM winners"))
    )
    assert rows("SELECT balance FROM accounts WHERE id = 'house'") == [(60 * PRICE,)]
    assert claim_all(round_id) == won
    assert look(round_id) == "payable"
    assert side.rows("SELECT count(*) FROM winners WHERE claimed_at IS NULL") == [(0,)]
    side.take_to(round_id, "CLOSED")
    assert look(round_id) == "done"
    assert the_round(round_id).due_at is None
