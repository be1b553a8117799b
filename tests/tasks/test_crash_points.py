"""A process that dies between any two statements, many that work at once: nothing is lost, nothing is done twice."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.orm import Session

from models.session import transaction
from protocol.lifecycle import State
from tasks.rounds import STEPS, advance_once, advance_round
from tests.factories import (
    a_round,
    balances,
    do_pieces,
    move_clock_to,
    rows,
    some_operators,
    take_part,
    take_to,
    the_round,
)

pytestmark = pytest.mark.usefixtures("house")


class Killed(BaseException):
    """Stands for the end of the process: nothing of ours catches it."""


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


def die_at_flush(session: Session, number: int) -> None:
    """Let the session's process end when it writes for the `number`-th time."""
    count = 0

    def dying(*_: object) -> None:
        nonlocal count
        count += 1
        if count == number:
            raise Killed

    event.listen(session, "before_flush", dying)


@pytest.mark.parametrize("number", range(1, 9))
def test_a_step_that_dies_was_never_begun_and_is_done_once_by_the_next(
    monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    operators = some_operators(2)
    round_id = a_round(operators)
    take_part(round_id, operators)
    move_clock_to(round_id, "close_at")
    original = transaction
    deaths = 0

    for _ in range(40):
        before = everything()
        with monkeypatch.context() as patched:
            from contextlib import contextmanager

            @contextmanager
            def mortal() -> Any:
                with original() as session:
                    die_at_flush(session, number)
                    yield session

            patched.setattr("tasks.rounds.transaction", mortal)
            try:
                advance_once(round_id)
            except Killed:
                deaths += 1
                assert everything() == before
        if not advance_once(round_id) and not do_pieces(round_id):
            break
    assert the_round(round_id).state is State.CLOSED
    steps = [trigger for _, trigger in everything()["steps"]]
    assert len(steps) == len(set(steps)) == 8
    told = Counter(rows("SELECT event, operator_id FROM deliveries"))
    assert set(told.values()) == {1}
    assert deaths or number > 3
    assert sum(balances().values()) == 0


def test_a_crash_after_the_seed_is_fixed_goes_on_with_the_same_seed() -> None:
    operators = some_operators(2)
    round_id = a_round(operators)
    take_part(round_id, operators)
    take_to(round_id, State.ESCROWED)
    move_clock_to(round_id, "scheduled_draw_time")
    advance_once(round_id)
    seed = rows("SELECT draw_seed FROM draws")
    advance_once(round_id)
    do_pieces(round_id)
    advance_round(round_id)
    assert rows("SELECT draw_seed FROM draws") == seed
    assert the_round(round_id).state is State.DRAWN


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
    round_id = a_round(operators)
    take_part(round_id, operators)
    take_to(round_id, State.CLOSED)
    before = everything()
    assert advance_round(round_id) == []
    assert everything() == before
    assert rows("SELECT due_at FROM rounds") == [(None,)]


def test_every_trigger_that_time_or_work_brings_has_a_step() -> None:
    from protocol.lifecycle import Trigger

    assert set(STEPS) == set(Trigger) - {Trigger.OPENED, Trigger.MANIFEST_ACCEPTED}
