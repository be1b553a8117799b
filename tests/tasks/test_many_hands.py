"""Many that work at once on one round, and a round at which nothing is left to do: nothing is done twice."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from protocol.lifecycle import State
from tasks.rounds import STEPS, advance_round
from tests.factories import (
    a_played_round,
    a_round,
    balances,
    do_pieces,
    move_clock_to,
    rows,
    some_operators,
    take_part,
    the_round,
)

pytestmark = pytest.mark.usefixtures("house")


def everything() -> dict[str, list[tuple[Any, ...]]]:
    """All that a step may change, without the times at which it did."""
    return {
        "rounds": rows("SELECT id, state, failure_reason, settlement_hash, total_deposited FROM rounds ORDER BY id"),
        "draws": rows("SELECT round_id, draw_seed, winners_root, drawn_at IS NULL FROM draws"),
        "winners": rows("SELECT tier, operator_id, ticket_id, prize_usdc FROM winners ORDER BY 1, 2, 3"),
        "log": rows("SELECT round_id, type, data::text FROM round_events ORDER BY id"),
        "steps": rows("SELECT round_id, trigger FROM round_transitions ORDER BY id"),
        "deliveries": sorted(rows("SELECT event, operator_id FROM deliveries")),
        "accounts": sorted(balances().items()),
        "postings": sorted(rows("SELECT reference FROM ledger_postings")),
        "operators": rows(
            "SELECT id, rounds_participated, rounds_escrowed, rounds_excluded FROM operators ORDER BY id"
        ),
    }


def test_many_hands_at_once_change_nothing_but_speed() -> None:
    operators = some_operators(3)
    round_id = a_round(operators)
    take_part(round_id, operators)
    move_clock_to(round_id, "close_at")

    def hand(_: int) -> None:
        for _ in range(12):
            advance_round(round_id)
            do_pieces(round_id)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(hand, range(6)))
    while advance_round(round_id) or do_pieces(round_id):
        pass
    found = everything()
    assert the_round(round_id).state is State.CLOSED
    assert len(found["steps"]) == 8
    assert set(Counter(map(tuple, found["deliveries"])).values()) == {1}
    assert sorted(reference for (reference,) in found["postings"] if not reference.startswith("deposit")) == [
        *(f"escrow:{round_id}:{name}" for name in operators),
        f"settlement:{round_id}",
    ]
    assert sum(balances().values()) == 0


def test_a_finished_round_is_looked_at_and_left_alone() -> None:
    operators = some_operators(1)
    round_id = a_played_round(operators, State.CLOSED)
    before = everything()
    assert advance_round(round_id) == []
    assert everything() == before
    assert rows("SELECT due_at FROM rounds") == [(None,)]


def test_every_trigger_that_time_or_work_brings_has_a_step() -> None:
    from protocol.lifecycle import Trigger

    assert set(STEPS) == set(Trigger) - {Trigger.OPENED, Trigger.MANIFEST_ACCEPTED}
