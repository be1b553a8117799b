"""Rounds that lose operators, or all of them: exclusions, failures, refunds."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from app.operator.tickets import selling
from models.rounds import request_abort
from models.session import transaction
from protocol.chain import round_hash
from protocol.errors import Conflict
from protocol.lifecycle import State
from tasks.rounds import advance_round
from tests.factories import (
    PRICE,
    a_played_round,
    a_round,
    an_operator,
    balances,
    fund,
    manifest,
    move_clock_to,
    rows,
    some_operators,
    some_tickets,
    submit,
    take_part,
    take_to,
    the_round,
    work,
)
from tests.polling import until

pytestmark = pytest.mark.usefixtures("house")


def told(event: str) -> dict[str, dict[str, Any]]:
    found = rows("SELECT operator_id, body FROM deliveries WHERE event = :e", e=event)
    return {operator_id: json.loads(bytes(body))["data"] for operator_id, body in found}


def exclusions() -> dict[str, str]:
    return dict(rows("SELECT operator_id, excluded_reason FROM participations WHERE excluded_at IS NOT NULL"))  # type: ignore[arg-type]


def test_a_round_nobody_joined_fails() -> None:
    operators = some_operators(2)
    round_id = a_round(operators)
    submit(round_id, "op_a", some_tickets(5))  # tickets without a manifest join nothing
    move_clock_to(round_id, "seal_at")
    work(round_id)
    row = the_round(round_id)
    assert (row.state, row.failure_reason) == (State.FAILED, "no manifests")
    failed = {"roundId": round_id, "reason": "no manifests"}
    assert told("round.failed") == dict.fromkeys(operators, failed)
    assert exclusions() == dict.fromkeys(operators, "missed_sealing")
    assert set(told("operator.excluded")) == set(operators)


def test_who_missed_sealing_is_left_out_and_told_and_the_others_go_on() -> None:
    operators = some_operators(3)
    round_id = a_round(operators)
    take_part(round_id, operators[:2])
    take_to(round_id, State.CLOSED)
    assert exclusions() == {"op_c": "missed_sealing"}
    assert told("operator.excluded") == {
        "op_c": {"roundId": round_id, "operatorId": "op_c", "reason": "missed_sealing"}
    }
    assert told("round.sealing_deadline")["op_c"]["operatorsMissed"] == 1
    assert the_round(round_id).total_tickets == 60


def test_a_manifest_that_lies_about_its_tickets_is_left_out() -> None:
    operators = some_operators(2)
    round_id = a_round(operators)
    take_part(round_id, ["op_a"])
    submit(round_id, "op_b", some_tickets(5))
    manifest(round_id, "op_b", ticketsRoot="0" * 64)
    take_to(round_id, State.CLOSED)
    assert exclusions() == {"op_b": "manifest_mismatch"}
    assert rows("SELECT rounds_excluded, rounds_participated FROM operators WHERE id = 'op_b'") == [(1, 0)]


def test_a_round_of_liars_fails() -> None:
    operators = some_operators(1)
    round_id = a_round(operators)
    submit(round_id, "op_a", some_tickets(5))
    manifest(round_id, "op_a", ticketsRoot="0" * 64)
    move_clock_to(round_id, "sealing_deadline")
    work(round_id)
    assert the_round(round_id).failure_reason == "no manifests"


def test_who_misses_escrow_is_left_out_of_the_draw() -> None:
    operators = [an_operator("a"), an_operator("b", funds=30 * PRICE - 1)]
    round_id = a_round(operators)
    take_part(round_id, operators)
    move_clock_to(round_id, "sealing_deadline")
    work(round_id)
    assert the_round(round_id).state is State.SEALED
    move_clock_to(round_id, "escrow_deadline")
    work(round_id)
    assert the_round(round_id).state is State.ESCROWED
    assert exclusions() == {"op_b": "missed_escrow"}
    assert told("round.escrow_deadline")["op_a"] == {"roundId": round_id, "operatorsExcluded": ["op_b"]}
    take_to(round_id, State.CLOSED)
    assert the_round(round_id).total_tickets == 30
    assert balances()["operator:op_b"] == 30 * PRICE - 1
    assert not rows("SELECT 1 FROM winners WHERE operator_id = 'op_b'")


def test_a_deposit_before_the_deadline_wakes_the_round_and_completes_it() -> None:
    operators = [an_operator("a"), an_operator("b", funds=0)]
    round_id = a_round(operators)
    take_part(round_id, operators)
    move_clock_to(round_id, "sealing_deadline")
    work(round_id)
    assert the_round(round_id).state is State.SEALED
    fund("op_b", 30 * PRICE)
    assert rows("SELECT due_at <= clock_timestamp() FROM rounds") == [(True,)]
    work(round_id)
    assert the_round(round_id).state is State.ESCROWED
    assert exclusions() == {}


def test_a_round_without_escrow_fails_and_leaves_pool_and_odds_alone() -> None:
    operators = [an_operator("a", funds=10)]
    round_id = a_round(operators)
    take_part(round_id, operators)
    move_clock_to(round_id, "escrow_deadline")
    work(round_id)
    row = the_round(round_id)
    assert (row.state, row.failure_reason) == (State.FAILED, "no escrow")
    assert balances() == {"external": -10, "operator:op_a": 10}
    assert rows("SELECT cumulative_tickets FROM jackpot") == [(0,)]


@pytest.mark.parametrize("state", [State.OPEN, State.SEALING, State.SEALED, State.ESCROWED])
def test_an_aborted_round_returns_every_escrow(state: State) -> None:
    operators = [an_operator("a"), an_operator("b", funds=0 if state is State.SEALED else 10**12)]
    round_id = a_played_round(operators, state)
    before = {"operator:op_a": 10**12}
    with transaction() as session:
        request_abort(session, round_id, "flood in the draw hall")
    work(round_id)
    row = the_round(round_id)
    assert (row.state, row.failure_reason) == (State.FAILED, "flood in the draw hall")
    assert {name: balances()[name] for name in before} == before
    assert balances().get(f"escrow:{round_id}", 0) == 0
    assert set(told("round.failed")) == set(operators)


def test_a_drawn_round_is_not_aborted_any_more() -> None:
    operators = some_operators(1)
    round_id = a_played_round(operators, State.DRAWN)
    with transaction() as session:
        request_abort(session, round_id, "too late")
    work(round_id)
    assert the_round(round_id).state is State.DRAWN


def test_the_next_round_chains_to_a_failed_one() -> None:
    operators = some_operators(1)
    first, second = a_round(operators), a_round(operators)
    take_part(second, operators)
    move_clock_to(first, "seal_at")
    work(first)
    take_to(second, State.ESCROWED)
    assert the_round(second).previous_round_hash == round_hash(first, "FAILED", None, None, "no manifests")


def test_tabulations_that_disagree_stop_the_round_before_any_money_moves() -> None:
    operators = some_operators(2)
    round_id = a_played_round(operators, State.ESCROWED)
    move_clock_to(round_id, "scheduled_draw_time")
    from tasks.rounds import advance_round
    from tests.factories import do_pieces

    advance_round(round_id)
    do_pieces(round_id)
    with transaction() as session:
        from sqlalchemy import text

        session.execute(
            text("INSERT INTO winners (round_id, tier, operator_id, ticket_id) SELECT 1, 0, 'op_a', ticket_id "
                 "FROM tickets_r1 WHERE operator_id = 'op_a' LIMIT 1 ON CONFLICT DO NOTHING")
        )  # fmt: skip
    before = balances()
    move_clock_to(round_id, "close_at")
    work(round_id)
    assert the_round(round_id).state is State.DRAWN
    assert balances() == before
    assert rows("SELECT result->>'agrees' FROM round_pieces WHERE kind = 'tabulate' ORDER BY operator_id") == [
        ("false",),
        ("true",),
    ]


def test_a_round_fails_however_busy_its_operators_are() -> None:
    """Somebody is always sending: each begins before the last one is done."""
    aborted = a_round(some_operators(4))
    with somebody_always_sends(aborted) as sent:
        with transaction() as session:
            request_abort(session, aborted, "stop it")
        until(lambda: advance_round(aborted), within=20, what="the round has failed")
        assert sent() > 0
    assert the_round(aborted).state is State.FAILED


@contextlib.contextmanager
def somebody_always_sends(round_id: int) -> Iterator[Callable[[], int]]:
    """Batches of four operators, each of which takes a while and overlaps with the next; gives how many there were."""
    over, batches = threading.Event(), []

    def send(number: int) -> None:
        over.wait(number * 0.1)
        while not over.is_set():
            with transaction() as session, contextlib.suppress(Conflict):
                selling(session, round_id, f"op_{'abcd'[number]}")
                batches.append(number)
                over.wait(0.4)

    with ThreadPoolExecutor(4) as pool:
        sending = [pool.submit(send, number) for number in range(4)]
        until(lambda: len(batches) >= 4, what="all of them send")
        try:
            yield lambda: len(batches)
        finally:
            over.set()
        for one in sending:
            one.result()
