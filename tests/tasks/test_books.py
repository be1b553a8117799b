"""The books of a round: its settlement is posted whole or not at all, and a round that fails gives everything back."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text

from models.ledger import EXTERNAL, POOL, RESERVE, post
from models.rounds import request_abort
from models.session import transaction
from protocol.lifecycle import State, Trigger
from tasks.rounds import advance_once, advance_round
from tests.dying import deaths
from tests.factories import (
    PRICE,
    a_played_round,
    a_round,
    an_operator,
    balances,
    do_pieces,
    move_clock_to,
    rows,
    some_operators,
    take_part,
    the_round,
    work,
)

pytestmark = pytest.mark.usefixtures("generous")


def a_ready_round(operators: list[str]) -> int:
    """A DRAWN round that only has to be settled."""
    round_id = a_played_round(operators, State.DRAWN)
    move_clock_to(round_id, "settle_at")
    return round_id


def books(round_id: int) -> dict[str, Any]:
    return {
        "state": the_round(round_id).state,
        "accounts": balances(),
        "postings": rows("SELECT reference FROM ledger_postings ORDER BY 1"),
        "lottery": rows("SELECT cumulative_tickets, draws_since_last_win, last_win_round_id FROM jackpot"),
        "expiries": rows("SELECT round_id, expires_at FROM expiries"),
        "told": rows("SELECT count(*) FROM deliveries"),
    }


def test_a_settlement_killed_at_any_statement_never_happened_and_is_posted_once_by_the_next() -> None:
    round_id = a_ready_round(some_operators(2))
    before = books(round_id)
    assert deaths(lambda: advance_once(round_id), lambda: books(round_id) == before) >= 15
    done = books(round_id)
    assert done["state"] is State.SETTLED
    assert [name for (name,) in done["postings"] if name.startswith("settlement")] == [f"settlement:{round_id}"]
    [(terms, releases)] = rows("SELECT terms, releases FROM draws")
    paid = {f"operator:{name}": int(total) for name, total in releases.items()}
    assert {name: done["accounts"][name] - before["accounts"][name] for name in paid} == paid
    assert {name: done["accounts"].get(name, 0) for name in (POOL, RESERVE, "fee", f"escrow:{round_id}")} == {
        POOL: int(terms["pool1"]),
        RESERVE: int(terms["reserve1"]),
        "fee": int(terms["feeKept"]),
        f"escrow:{round_id}": 0,
    }


@pytest.mark.parametrize("account", [POOL, RESERVE])
def test_a_settlement_that_leaves_another_sum_than_it_promises_does_not_happen(account: str) -> None:
    round_id = a_ready_round(some_operators(1))
    with transaction() as session:
        post(session, "a slip of the pen", "deposit", {EXTERNAL: -1, account: 1})
    before = books(round_id)
    with pytest.raises(ArithmeticError, match=f"{account}1"):
        advance_round(round_id)
    assert books(round_id) == before


@pytest.mark.parametrize("change", [("subPaid", 1), ("feeKept", -1), ("pool1", 1), ("reserve0", 1)])
def test_terms_that_do_not_add_up_move_nothing(change: tuple[str, int]) -> None:
    round_id = a_ready_round(some_operators(1))
    name, by = change
    with transaction() as session:
        session.execute(text("SET LOCAL session_replication_role = replica"))
        session.execute(
            text(
                "UPDATE draws SET terms = terms || jsonb_build_object(:n ::text, ((terms ->> :n)::bigint + :by)::text)"
            ),
            {"n": name, "by": by},
        )
    before = books(round_id)
    with pytest.raises(ArithmeticError, match="add up"):
        advance_round(round_id)
    assert books(round_id) == before


def test_a_release_of_one_micro_usdc_too_many_moves_nothing() -> None:
    round_id = a_ready_round(some_operators(1))
    with transaction() as session:
        session.execute(text("SET LOCAL session_replication_role = replica"))
        session.execute(
            text("UPDATE draws SET releases = jsonb_build_object('op_a', ((releases ->> 'op_a')::bigint + 1)::text)")
        )
    before = books(round_id)
    with pytest.raises(Exception, match="not to zero"):
        advance_round(round_id)
    assert books(round_id) == before


FUNDS = {"a": 10**12 + 1, "b": 31 * PRICE + 7, "c": 3}
"""``c`` cannot pay for its tickets and is left out, or keeps the round waiting."""


def nothing_more(round_id: int) -> None:
    pass


def seed_fixed(round_id: int) -> None:
    move_clock_to(round_id, "scheduled_draw_time")
    assert advance_once(round_id) is Trigger.SEED_FIXED


def matched(round_id: int) -> None:
    seed_fixed(round_id)
    do_pieces(round_id)
    assert rows("SELECT 1 FROM winners LIMIT 1") == [(1,)]


@pytest.mark.parametrize(
    ("stage", "state", "further"),
    [
        (None, State.OPEN, nothing_more),
        ("seal_at", State.SEALING, nothing_more),
        ("sealing_deadline", State.SEALED, nothing_more),
        ("escrow_deadline", State.ESCROWED, nothing_more),
        ("escrow_deadline", State.ESCROWED, seed_fixed),
        ("escrow_deadline", State.ESCROWED, matched),
    ],
)
def test_a_round_that_fails_gives_every_operator_exactly_what_it_had(stage: Any, state: State, further: Any) -> None:
    operators = [an_operator(name, funds) for name, funds in FUNDS.items()]
    settled = a_ready_round(operators[:1])
    work(settled)
    round_id = a_round(operators)
    take_part(round_id, operators)
    before = balances()
    lottery = rows("SELECT cumulative_tickets, draws_since_last_win, last_win_round_id FROM jackpot")
    if stage == "seal_at":
        move_clock_to(round_id, stage)
        advance_round(round_id)
    elif stage is not None:
        move_clock_to(round_id, stage)
        work(round_id)
    further(round_id)
    assert the_round(round_id).state is state
    paid = {name for (name,) in rows("SELECT operator_id FROM participations WHERE escrow_usdc > 0 AND round_id = 2")}
    assert paid == ({"op_a", "op_b"} if state in (State.SEALED, State.ESCROWED) else set())
    with transaction() as session:
        request_abort(session, round_id, "flood in the draw hall")
    work(round_id)
    assert the_round(round_id).state is State.FAILED
    after = dict(balances())
    assert after.pop(f"escrow:{round_id}", 0) == 0
    assert after == before
    assert rows("SELECT cumulative_tickets, draws_since_last_win, last_win_round_id FROM jackpot") == lottery
