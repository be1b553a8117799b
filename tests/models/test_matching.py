"""Matching by stretches of blocks: every ticket is looked at once, whatever there is and whoever moved it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from models import matching
from models.matching import LARGE, PARALLEL, SMALL, Stretch, cut, match_tickets, stretches
from models.session import transaction
from models.tickets import Ticket
from protocol.lifecycle import State
from protocol.numbers import Numbers, tiers_won
from tests.factories import GENEROUS, a_round, manifest, rows, some_operators, some_tickets, submit, take_to

BLOCK = 8192
NUMBERS = Numbers(2, 2, 2, 2, 2, 2)

Sold = dict[str, list[Ticket]]
Wins = set[tuple[int, str, str]]


@given(st.integers(0, 10**7))
def test_stretches_follow_each_other_from_the_first_block_to_whatever_is_the_last(blocks: int) -> None:
    found = cut(blocks * BLOCK, blocks)
    assert found[0][0] == 0
    assert found[-1][1] is None
    assert [end for _, end in found[:-1]] == [first for first, _ in found[1:]]
    lengths = [(blocks if end is None else end) - first for first, end in found]
    assert sum(lengths) == blocks
    assert max(lengths) * BLOCK <= LARGE
    assert len(found) <= PARALLEL or min(lengths) * BLOCK >= LARGE // 2
    assert len(found) == 1 or min(lengths) * BLOCK >= SMALL - BLOCK


def sell(counts: Sequence[int], seed: int = 1) -> tuple[int, Sold]:
    """A round on whose draw only its state is missing; operators send by turns, as they do."""
    operators = some_operators(len(counts))
    round_id = a_round(operators)
    sold = {
        operator_id: some_tickets(count, seed * 100 + place, GENEROUS.number_ranges)
        for place, (operator_id, count) in enumerate(zip(operators, counts, strict=True))
    }
    for start in range(0, max(counts), 50):
        for operator_id, batch in sold.items():
            if batch[start : start + 50]:
                submit(round_id, operator_id, batch[start : start + 50])
    for operator_id in operators:
        manifest(round_id, operator_id)
    with transaction() as session:
        session.execute(text("SET LOCAL session_replication_role = replica"))
        session.execute(
            text("INSERT INTO draws (round_id, draw_seed, jackpot_number, bonus1, bonus2, bonus3, bonus4, bonus5) "
                 f"VALUES ({round_id}, 'x', 2, 2, 2, 2, 2, 2)")
        )  # fmt: skip
    return round_id, sold


def plan(round_id: int) -> list[Stretch]:
    with transaction() as session:
        return stretches(session, round_id)


def match(round_id: int, operators: Sequence[str], stretch: Stretch | None) -> int:
    with transaction() as session:
        return match_tickets(session, round_id, NUMBERS, operators, stretch)


def counted(sold: Sold, operators: Sequence[str]) -> Wins:
    """The wins, counted in the plainest way."""
    return {
        (tier, operator_id, ticket[0])
        for operator_id in operators
        for ticket in sold[operator_id]
        for tier in tiers_won(ticket[1:7], NUMBERS)
    }


def stored() -> Wins:
    return {(tier, operator_id, ticket_id) for tier, operator_id, ticket_id in winners()}


def winners() -> list[tuple[Any, ...]]:
    return rows("SELECT tier, operator_id, ticket_id FROM winners")


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block is a stretch."""
    monkeypatch.setattr(matching, "SMALL", BLOCK)
    monkeypatch.setattr(matching, "LARGE", BLOCK)


@pytest.mark.usefixtures("house", "tiny", "generous")
@pytest.mark.parametrize("seed", range(6))
def test_together_they_find_what_a_plain_count_finds_and_each_win_once(seed: int) -> None:
    chance = random.Random(seed)
    round_id, sold = sell([chance.choice((0, 1, 40, 300, 700)) for _ in range(4)], seed)
    in_draw = sorted(chance.sample(sorted(sold), chance.randint(1, 4)))
    planned = plan(round_id)
    assert len(planned) == max(rows(f"SELECT pg_relation_size('tickets_r{round_id}') / {BLOCK}")[0][0], 1)
    chance.shuffle(planned)
    found = sum(match(round_id, in_draw, stretch) for stretch in planned)
    wins = counted(sold, in_draw)
    assert stored() == wins
    assert found == len(wins)


@pytest.mark.usefixtures("house", "generous")
@pytest.mark.parametrize("tickets", [0, 1])
def test_of_nothing_and_of_one_ticket_there_is_one_stretch(tickets: int) -> None:
    round_id, sold = sell([tickets])
    [stretch] = plan(round_id)
    match(round_id, ["op_a"], stretch)
    assert stored() == counted(sold, ["op_a"])


@pytest.mark.usefixtures("house", "tiny", "generous")
def test_done_again_or_by_many_at_once_it_changes_nothing() -> None:
    round_id, sold = sell([300, 300])
    planned = plan(round_id)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda stretch: match(round_id, list(sold), stretch), planned * 2))
    wins = counted(sold, list(sold))
    assert stored() == wins
    assert sum(found) == len(wins) == len(winners())
    assert [match(round_id, list(sold), stretch) for stretch in planned] == [0] * len(planned)


@pytest.mark.usefixtures("house", "tiny", "generous")
def test_rows_that_somebody_moved_meanwhile_are_found_all_the_same() -> None:
    round_id, sold = sell([400, 400])
    planned = plan(round_id)
    half = len(planned) // 2
    for stretch in planned[half:]:
        match(round_id, list(sold), stretch)
    with transaction() as session:
        session.execute(text(f"CLUSTER tickets_r{round_id} USING tickets_r{round_id}_key"))
    for stretch in planned[:half]:
        match(round_id, list(sold), stretch)
    assert stored() == counted(sold, list(sold))


@pytest.mark.usefixtures("house", "tiny", "generous")
def test_it_reads_the_blocks_of_its_stretch_and_no_others() -> None:
    round_id, sold = sell([700])
    planned = plan(round_id)
    assert len(planned) > 4
    match(round_id, list(sold), planned[1])
    placed = rows(f"SELECT ticket_id FROM tickets_r{round_id} WHERE ctid >= '(1,0)' AND ctid < '(2,0)'")
    here = {ticket_id for (ticket_id,) in placed}
    assert stored() == {win for win in counted(sold, ["op_a"]) if win[2] in here}


@pytest.mark.usefixtures("house")
@pytest.mark.parametrize("key", ["2, 0, 'op_a'", "1, 0, 'op_b'", "1, 0, 'op_c'"])
def test_a_winner_without_a_draw_or_of_somebody_without_a_manifest_is_refused(key: str) -> None:
    operators = some_operators(2)
    round_id = a_round(operators)
    submit(round_id, "op_a", some_tickets(3))
    manifest(round_id, "op_a")
    take_to(round_id, State.DRAWN)
    with pytest.raises(DBAPIError, match="a winner needs a draw"), transaction() as session:
        session.execute(text(f"INSERT INTO winners (round_id, tier, operator_id, ticket_id) VALUES ({key}, 't-0')"))


@pytest.mark.usefixtures("house", "generous")
@pytest.mark.parametrize("change", ["tier = 5", "operator_id = 'op_b'", "ticket_id = 't-x'", "round_id = 2"])
def test_a_win_never_becomes_another_one(change: str) -> None:
    operators = some_operators(1)
    round_id = a_round(operators)
    submit(round_id, "op_a", some_tickets(30, ranges=GENEROUS.number_ranges))
    manifest(round_id, "op_a")
    take_to(round_id, State.DRAWN)
    with pytest.raises(DBAPIError, match="never becomes another"), transaction() as session:
        session.execute(text(f"UPDATE winners SET {change}"))
