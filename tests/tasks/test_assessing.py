"""The worst case of a sealed round: counted from the archives, published before the draw."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from sqlalchemy import text

from models.rounds import Round
from models.session import transaction
from models.tickets import Ticket
from protocol.lifecycle import State
from protocol.settlement import Stake, available_for_prizes, worst_case
from tasks.pieces import do_piece
from tasks.rounds import advance_round
from tests.dying import deaths
from tests.factories import (
    GENEROUS,
    PRICE,
    RANGES,
    a_round,
    an_operator,
    do_pieces,
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

pytestmark = pytest.mark.usefixtures("house")


def sealed_with(sold: dict[str, list[Ticket]]) -> int:
    """A round with these tickets, sealed and nothing after that done."""
    round_id = a_round(sorted(sold))
    for operator_id, batch in sold.items():
        submit(round_id, operator_id, batch)
        manifest(round_id, operator_id)
    take_to(round_id, State.SEALING)
    do_pieces(round_id)
    move_clock_to(round_id, "sealing_deadline")
    advance_round(round_id)
    return round_id


def most_shared(round_id: int) -> list[int]:
    do_pieces(round_id)
    [(found,)] = rows("SELECT result->'mostShared' FROM round_pieces WHERE kind = 'liability'")
    assert the_round(round_id).worst_case_usdc == worst_case(the_round(round_id).parsed_rules, found)
    return found  # type: ignore[no-any-return]


def test_the_most_tickets_that_share_a_number_are_counted_tier_by_tier_over_all_operators() -> None:
    an_operator("a"), an_operator("b")
    round_id = sealed_with(
        {
            "op_a": [
                ("t-1", 1, 1, 1, 1, 1, 1, True),
                ("t-2", 1, 1, 1, 1, 1, 2, True),
                ("t-3", 1, 2, 1, 1, 2, 3, True),
            ],
            "op_b": [("t-1", 1, 1, 1, 2, 3, 4, True)],
        }
    )
    assert most_shared(round_id) == [3, 4, 3, 2, 1]


@pytest.mark.usefixtures("generous")
@pytest.mark.parametrize("seed", range(3))
def test_it_is_what_a_naive_count_says(seed: int) -> None:
    pick = random.Random(seed)
    sold = {
        operator_id: some_tickets(pick.randint(1, 200), pick.randint(1, 10**9), GENEROUS.number_ranges)
        for operator_id in some_operators(3)
    }
    everything = [ticket for batch in sold.values() for ticket in batch]
    naive = [max(Counter(ticket[1 + tier] for ticket in everything).values()) for tier in range(1, 6)]
    assert most_shared(sealed_with(sold)) == naive


def test_the_highest_number_of_every_range_has_a_place() -> None:
    an_operator("a")
    assert most_shared(sealed_with({"op_a": [("t-1", *RANGES, True)]})) == [1] * 5  # type: ignore[list-item]


def test_the_worst_of_all_rounds_is_on_record_too() -> None:
    """As many tickets as the odds ladder knows of, and all of them with the same numbers."""
    an_operator("a")
    round_id = sealed_with({"op_a": some_tickets(1)})
    worst = worst_case(the_round(round_id).parsed_rules, [100_000_000_000] * 5)
    with transaction() as session:
        session.get_one(Round, round_id).worst_case_usdc = worst
    kept = the_round(round_id).worst_case_usdc
    assert kept == worst
    assert type(kept) is int


def test_the_seal_does_not_wait_for_it_but_the_draw_does() -> None:
    round_id = sealed_with({name: some_tickets(10) for name in some_operators(2)})
    row = the_round(round_id)
    assert row.state is State.ESCROWED
    assert row.worst_case_usdc is None
    stakes = [Stake(name, 10) for name in ("op_a", "op_b")]
    assert row.coverage_usdc == available_for_prizes(row.parsed_rules, stakes, 0, 0)
    move_clock_to(round_id, "scheduled_draw_time")
    advance_round(round_id)
    assert rows("SELECT count(*) FROM draws") == [(0,)]
    do_pieces(round_id)
    assert rows("SELECT due_at <= clock_timestamp() FROM rounds") == [(True,)]  # the piece woke it
    assert the_round(round_id).worst_case_usdc
    work(round_id)
    assert the_round(round_id).state is State.DRAWN


def test_an_operator_that_sealed_and_then_did_not_pay_counts() -> None:
    an_operator("a"), an_operator("b", funds=5 * PRICE - 1)
    round_id = sealed_with({name: some_tickets(5) for name in ("op_a", "op_b")})
    move_clock_to(round_id, "escrow_deadline")
    advance_round(round_id)
    assert the_round(round_id).excluded_operator_count == 1
    assert min(most_shared(round_id)) == 2


def test_an_operator_whose_manifest_was_wrong_does_not_count() -> None:
    an_operator("a"), an_operator("b")
    round_id = a_round(["op_a", "op_b"])
    take_part(round_id, ["op_a"], tickets=1)
    submit(round_id, "op_b", some_tickets(5))
    manifest(round_id, "op_b", ticketsRoot="0" * 64)
    take_to(round_id, State.ESCROWED)
    assert most_shared(round_id) == [1] * 5


def test_a_damaged_archive_is_found_before_the_draw_while_the_round_can_still_be_failed() -> None:
    round_id = sealed_with({name: some_tickets(5) for name in some_operators(2)})
    with transaction() as session:
        session.execute(text("SET LOCAL session_replication_role = replica"))
        session.execute(text("UPDATE archive_pieces SET content = set_byte(content, 9, 0) WHERE key LIKE '%/op_b/%'"))
    from models.archive_copies import UnusableArchive
    from models.rounds import request_abort

    with pytest.raises(UnusableArchive, match="r1/op_b is not what was archived"):
        do_pieces(round_id)
    move_clock_to(round_id, "scheduled_draw_time")
    assert advance_round(round_id) == []
    with transaction() as session:
        request_abort(session, round_id, "an archive was damaged")
    work(round_id)
    assert the_round(round_id).state is State.FAILED
    assert the_round(round_id).worst_case_usdc is None
    assert rows("SELECT 1 FROM round_pieces WHERE due_at IS NOT NULL") == []


def test_killed_at_any_statement_it_is_done_once_by_the_next() -> None:
    round_id = sealed_with({name: some_tickets(5) for name in some_operators(2)})
    [(piece_id,)] = rows("SELECT id FROM round_pieces WHERE kind = 'liability'")
    assert deaths(lambda: do_piece(piece_id), lambda: the_round(round_id).worst_case_usdc is None) >= 6
    assert the_round(round_id).worst_case_usdc
    assert not do_piece(piece_id)
