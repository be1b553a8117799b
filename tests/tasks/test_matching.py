"""Matching in shards: a process that dies between or within them leaves nothing out and nothing twice."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from models import matching
from models.session import transaction
from protocol.lifecycle import State
from protocol.numbers import Numbers, tiers_won
from tasks.pieces import do_piece
from tasks.rounds import advance_round
from tests.dying import deaths
from tests.factories import (
    GENEROUS,
    a_round,
    manifest,
    move_clock_to,
    rows,
    some_operators,
    some_tickets,
    submit,
    take_to,
    the_round,
    work,
)

pytestmark = pytest.mark.usefixtures("house", "generous")

BLOCK = 8192


@pytest.fixture(autouse=True)
def _tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block is a shard."""
    monkeypatch.setattr(matching, "SMALL", BLOCK)
    monkeypatch.setattr(matching, "LARGE", BLOCK)


def a_round_to_be_matched(tickets: int = 250) -> tuple[int, list[int]]:
    """A round whose seed is fixed, and its shards. op_c sent tickets and no manifest: it is not in the draw."""
    operators = some_operators(3)
    round_id = a_round(operators)
    for seed, operator_id in enumerate(operators):
        submit(round_id, operator_id, some_tickets(tickets, seed, GENEROUS.number_ranges))
    for operator_id in operators[:2]:
        manifest(round_id, operator_id)
    take_to(round_id, State.ESCROWED)
    move_clock_to(round_id, "scheduled_draw_time")
    advance_round(round_id)
    shards = rows("SELECT id, shard, operator_id FROM round_pieces WHERE kind = 'match' ORDER BY shard")
    assert [shard for _, shard, _ in shards] == list(range(len(shards)))
    assert {operator_id for _, _, operator_id in shards} == {None}
    return round_id, [piece_id for piece_id, _, _ in shards]


def wins() -> set[tuple[Any, ...]]:
    return set(rows("SELECT tier, operator_id, ticket_id FROM winners"))


def counted(tickets: int = 250) -> set[tuple[Any, ...]]:
    """The wins of those in the draw, counted in the plainest way."""
    numbers = Numbers(*rows("SELECT jackpot_number, bonus1, bonus2, bonus3, bonus4, bonus5 FROM draws")[0])
    return {
        (tier, operator_id, ticket[0])
        for seed, operator_id in enumerate(("op_a", "op_b"))
        for ticket in some_tickets(tickets, seed, GENEROUS.number_ranges)
        for tier in tiers_won(ticket[1:7], numbers)
    }


def test_killed_at_any_statement_a_shard_is_done_once_by_the_next() -> None:
    _, shards = a_round_to_be_matched()
    assert deaths(lambda: do_piece(shards[1]), lambda: wins() == set()) >= 7
    found = wins()
    assert found
    assert rows("SELECT result FROM round_pieces WHERE id = :id", id=shards[1]) == [({"wins": len(found)},)]
    assert not do_piece(shards[1])
    assert wins() == found


def test_killed_between_shards_the_rest_is_matched_and_no_winner_shows_before() -> None:
    round_id, shards = a_round_to_be_matched()
    assert len(shards) > 4
    for piece_id in shards[::2]:
        assert do_piece(piece_id)
    seed = rows("SELECT draw_seed FROM draws")
    assert set() < wins() < counted()
    assert advance_round(round_id) == []
    assert the_round(round_id).state is State.ESCROWED
    assert rows("SELECT drawn_at, winner_counts, winners_root FROM draws") == [(None, None, None)]
    work(round_id)
    assert the_round(round_id).state is State.DRAWN
    assert rows("SELECT draw_seed FROM draws") == seed
    assert wins() == counted()
    assert rows("SELECT count(*) FROM winners WHERE prize_usdc IS NULL") == [(0,)]


def test_shards_are_planned_once() -> None:
    from tasks.drawing import plan_matching

    round_id, shards = a_round_to_be_matched()
    with transaction() as session:
        plan_matching(session, round_id)
    assert rows("SELECT id FROM round_pieces WHERE kind = 'match' ORDER BY shard") == [(one,) for one in shards]


def test_what_the_release_before_planned_by_operator_is_done_as_well() -> None:
    round_id, _ = a_round_to_be_matched()
    with transaction() as session:
        session.execute(text("DELETE FROM round_pieces WHERE kind = 'match'"))
        session.execute(
            text("INSERT INTO round_pieces (round_id, kind, operator_id, due_at) "
                 "SELECT 1, 'match', operator_id, now() FROM manifests")
        )  # fmt: skip
    work(round_id)
    assert the_round(round_id).state is State.DRAWN
    assert wins() == counted()


def test_the_release_before_cannot_finish_a_shard_that_it_does_not_understand() -> None:
    _, shards = a_round_to_be_matched()
    with pytest.raises(DBAPIError, match="shard_with_a_result"), transaction() as session:
        session.execute(text("UPDATE round_pieces SET due_at = NULL, result = '{}' WHERE id = :id"), {"id": shards[0]})
