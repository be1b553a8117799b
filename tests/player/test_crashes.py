"""A worker dies between any two of its statements: no ticket is sent or paid twice, and none is forgotten."""

from __future__ import annotations

import os

import pytest

from player.models.session import engine
from tests.dying import dies_at
from tests.player.coordinating import (
    PRICE,
    Side,
    claim_all,
    end_sales,
    learn,
    look,
    make_due,
    rows,
    sell_some,
    the_round,
)

pytestmark = pytest.mark.usefixtures("generous")

TICKETS = 12
SOLD = "SELECT ticket_id, jackpot_number, bonus1, bonus2, bonus3, bonus4, bonus5 FROM tickets WHERE round_id = "


def dies_in_every_step(round_id: int, statement: int) -> int:
    """Look until there is nothing to do at once; every look dies at this statement once, if it gets that far, and the
    next worker takes it up. Returns how often it died.
    """
    from player.tasks.rounds import look_at

    died, more = 0, True
    while more:
        make_due(round_id)
        died += dies_at(statement, lambda: look_at(round_id), engine)
        make_due(round_id)
        more = look_at(round_id)
    return died


def everybody_has_what_is_theirs(side: Side, round_id: int) -> None:
    """The books of both sides agree about a finished round, to the last micro-USDC."""
    assert sorted(rows(f"{SOLD}{round_id}")) == sorted(side.rows(f"{SOLD}{round_id}"))
    batches = f"SELECT sum(tickets), count(*) - count(accepted_at) FROM submissions WHERE round_id = {round_id}"
    assert rows(batches) == [(TICKETS, 0)]
    won = side.rows(f"SELECT tier, ticket_id, prize_usdc FROM winners WHERE round_id = {round_id}")
    prizes = rows(
        "SELECT p.tier, t.ticket_id, p.amount FROM prizes p JOIN tickets t ON t.id = p.ticket "
        f"WHERE p.round_id = {round_id} AND p.reported_at IS NOT NULL"
    )
    assert sorted(won) == sorted(prizes)
    assert side.rows(f"SELECT count(*) FROM winners WHERE round_id = {round_id} AND claimed_at IS NULL") == [(0,)]
    assert rows(f"SELECT balance FROM accounts WHERE id = 'sales:{round_id}'") == [(0,)]
    assert rows("SELECT sum(balance) FROM accounts") == [(0,)]
    assert rows(f"SELECT amount FROM transfers WHERE reference = 'settled:{round_id}'") == [(TICKETS * PRICE,)]
    kept = f"SELECT count(*), count(proof), count(DISTINCT leaf_index) FROM tickets WHERE round_id = {round_id}"
    assert rows(kept) == [(TICKETS, TICKETS, TICKETS)]


@pytest.mark.parametrize(
    "every",
    [pytest.param(4, id="some"), pytest.param(1, id="all", marks=[pytest.mark.chaos, pytest.mark.timeout(400)])],
)
def test_a_worker_may_die_at_every_statement_of_every_look(side: Side, every: int) -> None:
    seed = os.environ["HYPOTHESIS_SEED"]
    deaths, statement = 1, 1 + int(seed) % every
    print(f"deaths at every statement of {every}, from {statement} on; HYPOTHESIS_SEED={seed} replays it")
    while deaths:
        round_id = side.open_round()
        learn()
        sell_some(round_id, TICKETS - 4, seed=statement)
        deaths = dies_in_every_step(round_id, statement)
        sell_some(round_id, 4, seed=1_000 + statement)
        end_sales(round_id)
        deaths += dies_in_every_step(round_id, statement)
        assert the_round(round_id).stage == "bound"
        side.take_to(round_id, "ESCROWED")
        deaths += dies_in_every_step(round_id, statement)
        assert the_round(round_id).stage == "revealed"
        side.take_to(round_id, "SETTLED")
        deaths += dies_in_every_step(round_id, statement)
        assert the_round(round_id).stage == "payable"
        claim_all(round_id)
        side.take_to(round_id, "CLOSED")
        deaths += dies_in_every_step(round_id, statement)
        assert look(round_id) == "done"
        everybody_has_what_is_theirs(side, round_id)
        statement += every
    assert statement > 10


def test_who_asks_for_rounds_may_die_at_every_statement(side: Side) -> None:
    died = 0
    while True:
        round_id = side.open_round()
        if not dies_at(died + 1, learn, engine):
            break
        died += 1
        learn()
        assert the_round(round_id).stage == "selling"
    assert died > 5
    assert rows("SELECT count(*), count(DISTINCT nonce) FROM rounds") == [(died + 1, died + 1)]
