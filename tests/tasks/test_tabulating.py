"""Two tabulations of one round: they agree whatever the round, and nothing that was tampered with passes."""

from __future__ import annotations

import io
import logging
import random
import tracemalloc
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sqlalchemy import select, text

from models.archive_writer import ArchiveWriter
from models.rounds import Round
from models.session import transaction
from models.tabulations import disagreeing_rounds, tabulate_again
from models.work import Kind, Piece
from protocol.errors import Conflict
from protocol.lifecycle import State
from protocol.merkle import CHUNK
from protocol.rules import Rules
from protocol.tickets import ticket_line, tickets_root
from tasks.pieces import do_piece
from tasks.second_count import SecondCount
from tests.archives import copied, many_tickets
from tests.dying import deaths
from tests.factories import (
    GENEROUS,
    a_round,
    balances,
    just_drawn,
    manifest,
    move_clock_to,
    rows,
    some_operators,
    some_tickets,
    submit,
    take_part,
    the_round,
    work,
)
from tests.tampering import PLANTED, UNGUARDED, tampered

pytestmark = pytest.mark.usefixtures("generous")

TIERS = ("jackpot_number", "bonus1", "bonus2", "bonus3", "bonus4", "bonus5")


def a_drawn_round(tickets: int = 40) -> int:
    """A round with winners in every tier, whose second tabulations are planned and not done."""
    operators = some_operators(2)
    round_id = a_round(operators)
    take_part(round_id, operators, tickets)
    just_drawn(round_id)
    return round_id


def results() -> dict[str, dict[str, Any]]:
    return dict(rows("SELECT operator_id, result FROM round_pieces WHERE kind = 'tabulate' ORDER BY 1"))  # type: ignore[arg-type]


def settled(round_id: int) -> bool:
    """Let all the time of the round pass, and everybody work."""
    move_clock_to(round_id, "close_at")
    work(round_id)
    return the_round(round_id).state is State.CLOSED


@hypothesis_settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), tickets=st.integers(1, 60), ranges=st.tuples(*[st.integers(1, 9)] * 6))
def test_both_tabulations_and_a_naive_count_find_the_same_winners(
    house: None, monkeypatch: pytest.MonkeyPatch, seed: int, tickets: int, ranges: tuple[int, ...]
) -> None:
    jackpot, *bonuses = ranges
    rules = Rules(GENEROUS.ticket_price, jackpot, 500, 1_000, 400, 1_000, GENEROUS.prizes, tuple(bonuses))  # type: ignore[arg-type]
    monkeypatch.setattr("tasks.opening.current_rules", lambda cumulative: rules)
    operators = [name for (name,) in rows("SELECT id FROM operators ORDER BY 1")] or some_operators(2)
    round_id = a_round(operators)
    sold = {name: some_tickets(tickets, seed + place, ranges) for place, name in enumerate(operators)}
    for name, batch in sold.items():
        submit(round_id, name, batch)
        manifest(round_id, name)
    assert settled(round_id)
    drawn = rows(f"SELECT {', '.join(TIERS)} FROM draws WHERE round_id = {round_id}")[0]
    naive = {
        (tier, name, ticket[0])
        for name, batch in sold.items()
        for ticket in batch
        for tier in range(6)
        if ticket[1 + tier] == drawn[tier]
    }
    stored = rows(f"SELECT tier, operator_id, ticket_id FROM winners WHERE round_id = {round_id}")
    assert set(stored) == naive
    for name in operators:
        [(result,)] = rows(
            "SELECT result FROM round_pieces WHERE kind = 'tabulate' AND round_id = :r AND operator_id = :o",
            r=round_id, o=name,
        )  # fmt: skip
        expected = [sum(win[:2] == (tier, name) for win in naive) for tier in range(6)]
        assert result["agrees"]
        assert result["storedByTier"] == result["foundByTier"] == expected


@pytest.mark.parametrize("size", [1, CHUNK, CHUNK + 1, 4 * CHUNK, 9 * CHUNK + 7])
def test_wins_and_root_are_those_of_the_tickets_however_many(size: int) -> None:
    tickets, file = many_tickets(size), io.BytesIO()
    with ArchiveWriter(file) as writer:
        for start in range(0, size, CHUNK):
            writer.add(b"".join(copied(tickets[start : start + CHUNK])))
    file.seek(0)
    drawn = tickets[size // 2][1:7]
    found = SecondCount(file, 7, "op_a", drawn)
    wins = list(found.wins())
    assert wins == [
        (ticket[0], tier) for ticket in tickets for tier, number in enumerate(drawn) if ticket[1 + tier] == number
    ]
    assert found.tickets == size
    assert found.by_tier == [sum(tier == won for _, won in wins) for tier in range(6)]
    assert found.root == tickets_root(ticket_line(7, "op_a", *ticket) for ticket in tickets)


@pytest.mark.parametrize("what", PLANTED)
def test_a_planted_difference_stops_the_round_with_an_alarm_before_any_money_moves(
    what: str, caplog: pytest.LogCaptureFixture
) -> None:
    statement, faults = PLANTED[what]
    round_id = a_drawn_round()
    tampered(statement)
    before = balances()
    with caplog.at_level(logging.CRITICAL):
        assert not settled(round_id)
    assert the_round(round_id).state is State.DRAWN
    assert balances() == before
    found = results()
    assert found["op_a"]["agrees"]
    assert not found["op_b"]["agrees"]
    assert set(found["op_b"]["faults"]) == faults
    alarms = [entry for entry in caplog.records if entry.levelno == logging.CRITICAL]
    assert {entry.getMessage() for entry in alarms} == {"tabulations disagree"}
    assert "op_b" in {entry.__dict__["operator"] for entry in alarms}
    with transaction() as session:
        assert disagreeing_rounds(session) == 1


def test_a_win_on_record_for_an_operator_that_sold_nothing_is_found_in_the_sums() -> None:
    operators = some_operators(2)
    round_id = a_round(operators)
    take_part(round_id, ["op_a"], 40, seed=1)
    just_drawn(round_id)
    tampered("INSERT INTO winners (round_id, tier, operator_id, ticket_id) VALUES (1, 3, 'op_b', 't-1')")
    assert not settled(round_id)
    sums = results()["op_a"]["sums"]
    assert results()["op_a"]["agrees"]
    assert not sums["agree"]
    assert sums["drawn"] == sums["found"]
    assert sums["stored"][3] == sums["drawn"][3] + 1
    with transaction() as session:
        assert disagreeing_rounds(session) == 1


def test_counts_of_the_draw_that_were_changed_are_found_in_the_sums() -> None:
    round_id = a_drawn_round()
    tampered("UPDATE draws SET winner_counts = '[0, 0, 0, 0, 0, 0]'")
    assert not settled(round_id)
    sums = [result["sums"] for result in results().values() if "sums" in result]
    assert [one["agree"] for one in sums] == [False]
    assert sums[0]["stored"] == sums[0]["found"] != sums[0]["drawn"]


def test_it_is_named_which_tickets_differ_and_where_they_are() -> None:
    round_id = a_drawn_round()
    [(ticket_id, tier)] = rows(
        "SELECT ticket_id, tier FROM winners WHERE operator_id = 'op_b' ORDER BY ticket_id, tier LIMIT 1"
    )
    tampered(
        f"DELETE FROM winners WHERE operator_id = 'op_b' AND ticket_id = '{ticket_id}' AND tier = {tier}",
        "INSERT INTO winners (round_id, tier, operator_id, ticket_id) VALUES (1, 0, 'op_b', 'zzz')",
        "DELETE FROM tickets_r1 WHERE operator_id = 'op_b' AND ticket_id = 't-7'",
    )
    assert not settled(round_id)
    assert results()["op_b"]["differences"] == [
        {"ticketId": "t-7", "tier": None, "onlyIn": "archive"},
        {"ticketId": ticket_id, "tier": tier, "onlyIn": "archive"},
        {"ticketId": "zzz", "tier": 0, "onlyIn": "database"},
    ]


def test_of_many_differences_the_first_are_named_and_all_are_counted() -> None:
    round_id = a_drawn_round(tickets=100)
    [(wins,)] = rows("SELECT count(*) FROM winners WHERE operator_id = 'op_b'")
    tampered("DELETE FROM winners WHERE operator_id = 'op_b'")
    assert not settled(round_id)
    result = results()["op_b"]
    assert len(result["differences"]) == 10
    assert (sum(result["storedByTier"]), sum(result["foundByTier"])) == (0, wins)


def test_a_full_disk_says_nothing_about_an_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    round_id = a_drawn_round()
    with monkeypatch.context() as full:
        # Unbuffered, as a large archive's blocks are.
        full.setattr("models.archive_copies.TemporaryFile", lambda: io.FileIO("/dev/full", "r+"))
        with pytest.raises(OSError, match="No space left"):
            work(round_id)
    assert set(results().values()) == {None}, "nobody is accused, and it is done again"
    assert settled(round_id)


@pytest.mark.parametrize("reads", ["parquet.ParquetFile.read_row_group", "csv.read_csv"])
def test_a_machine_out_of_memory_says_nothing_about_an_archive_or_rows(
    monkeypatch: pytest.MonkeyPatch, reads: str
) -> None:
    round_id = a_drawn_round()
    with monkeypatch.context() as full:
        full.setattr(f"pyarrow.{reads}", lambda *_, **__: pa.allocate_buffer(1 << 62))
        with pytest.raises(pa.ArrowMemoryError):
            work(round_id)
    assert set(results().values()) == {None}
    assert settled(round_id)


def test_once_the_cause_is_mended_it_is_tabulated_again_and_settled() -> None:
    round_id = a_drawn_round()
    mended = rows("SELECT key, place, content FROM archive_pieces WHERE key LIKE '%/op_b/%'")
    tampered(PLANTED["a bit of the archive flipped"][0])
    assert not settled(round_id)
    with transaction() as session:
        session.execute(text(UNGUARDED))
        for key, place, content in mended:
            change = text("UPDATE archive_pieces SET content = :c WHERE key = :k AND place = :p")
            session.execute(change, {"c": bytes(content), "k": key, "p": place})
    work(round_id)
    assert the_round(round_id).state is State.DRAWN  # a result stands until somebody asks for another
    with transaction() as session:
        again = tabulate_again(session, session.get_one(Round, round_id))
    assert [(piece.operator_id, bool(piece.result and piece.result["agrees"])) for piece in again] == [
        ("op_a", True),
        ("op_b", False),
    ]
    assert settled(round_id)
    assert sum(balances().values()) == 0
    with transaction() as session:
        assert disagreeing_rounds(session) == 0


def test_tabulating_again_without_mending_changes_nothing() -> None:
    round_id = a_drawn_round()
    tampered(PLANTED["a winner removed"][0])
    assert not settled(round_id)
    found = results()
    with transaction() as session:
        tabulate_again(session, session.get_one(Round, round_id))
    assert not settled(round_id)
    assert {name: result["faults"] for name, result in results().items()} == {
        name: result["faults"] for name, result in found.items()
    }


def refused(round_id: int) -> str:
    with transaction() as session, pytest.raises(Conflict) as error:
        tabulate_again(session, session.get_one(Round, round_id))
    return error.value.code


def test_only_a_drawn_round_that_disagrees_is_tabulated_again() -> None:
    round_id = a_drawn_round()
    assert refused(round_id) == "tabulating"
    work(round_id)
    assert refused(round_id) == "tabulations_agree"
    assert settled(round_id)
    assert refused(round_id) == "wrong_state"


def test_killed_at_any_statement_a_tabulation_is_done_once_by_the_next() -> None:
    a_drawn_round()
    with transaction() as session:
        first, second = session.scalars(select(Piece.id).where(Piece.kind == Kind.TABULATE.value).order_by(Piece.id))
    do_piece(first)
    before = results()
    assert deaths(lambda: do_piece(second), lambda: results() == before) >= 8
    assert [result["agrees"] for result in results().values()] == [True, True]
    assert not do_piece(second)


def test_an_archive_of_any_size_is_counted_in_the_memory_of_one_group() -> None:
    chunk = b"".join(copied(many_tickets(CHUNK)))

    def peak(tickets: int) -> int:
        file = io.BytesIO()
        with ArchiveWriter(file) as writer:
            for _ in range(0, tickets, CHUNK):
                writer.add(chunk)
        file.seek(0)
        tracemalloc.start()
        for _ in SecondCount(file, 1, "op_a", (random.Random(1).randint(1, 50),) * 6).wins():
            pass
        measured = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return measured

    small = peak(8 * CHUNK)
    assert peak(24 * CHUNK) < 1.5 * small
