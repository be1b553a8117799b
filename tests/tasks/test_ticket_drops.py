"""Rows of finished rounds go when they are old enough and archived, and not a moment or a doubt before."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from models import ticket_drops
from models.session import engine, transaction
from models.ticket_drops import (
    check_archives,
    check_next_archive,
    detach_tickets,
    drop_tickets,
    droppable_rounds,
)
from models.tickets import stream_tickets
from protocol.lifecycle import State
from tasks import chores
from tests.factories import (
    a_played_round,
    a_round,
    an_operator,
    manifest,
    move_clock_to,
    rows,
    some_operators,
    some_tickets,
    submit,
    take_part,
    take_to,
    work,
)
from tests.tampering import A_FLIPPED_BYTE, tampered
from tests.ticket_drops import age, do_what_is_due, has_rows, keep_rows_for

pytestmark = pytest.mark.usefixtures("house")


@pytest.fixture
def a_month(monkeypatch: pytest.MonkeyPatch) -> None:
    keep_rows_for(30, monkeypatch)


def a_closed_round(days_ago: float = 31, operators: list[str] | None = None) -> int:
    round_id = a_played_round(operators or some_operators(2), State.CLOSED)
    age(round_id, days_ago)
    return round_id


def execute(statement: str) -> None:
    with transaction() as session:
        session.execute(text(statement))


def told_by_chores(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.name == "tasks.chores"]


def refused(statement: str) -> str:
    with pytest.raises(DBAPIError) as error:
        execute(statement)
    return str(error.value.orig).splitlines()[0]


def test_rows_stay_for_ever_unless_it_is_set() -> None:
    round_id = a_closed_round(10_000)
    assert do_what_is_due() == 1
    assert has_rows(round_id)
    assert rows("SELECT count(*) FROM archive_checks") == [(0,)]


@pytest.mark.usefixtures("a_month")
def test_the_rows_of_a_closed_round_go_after_so_many_days(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "tasks.chores")
    operators = some_operators(2)
    old = a_closed_round(30.01, operators)
    young = a_closed_round(29.99, operators)
    open_round = a_round(operators)
    age(open_round, 400)
    assert do_what_is_due() == 4  # two archives, one drop, and a last look
    assert (has_rows(old), has_rows(young), has_rows(open_round)) == (False, True, True)
    assert rows("SELECT round_id, tickets, archived FROM ticket_drops") == [(old, 60, 60)]
    assert [(record.round, record.older_than_days) for record in told_by_chores(caplog)] == [(old, 30)]  # type: ignore[attr-defined]
    assert do_what_is_due() == 1
    assert rows("SELECT count(*) FROM tickets") == [(60,)]


@pytest.mark.usefixtures("a_month")
def test_tickets_in_no_sealed_set_go_with_the_others() -> None:
    operators = [*some_operators(2), an_operator("liar"), an_operator("idle"), an_operator("poor", funds=0)]
    round_id = a_round(operators)
    take_part(round_id, [*operators[:2], "op_poor"])
    submit(round_id, "op_liar", some_tickets(3))
    manifest(round_id, "op_liar", ticketsRoot="0" * 64)
    submit(round_id, "op_idle", some_tickets(4))
    move_clock_to(round_id, "escrow_deadline")
    work(round_id)
    take_to(round_id, State.CLOSED)
    age(round_id, 31)
    do_what_is_due()
    assert not has_rows(round_id)
    # Who did not pay is archived with the rest, and so is, by chance of the order of things, who was wrong.
    assert rows("SELECT tickets, archived FROM ticket_drops") == [(97, 93)]
    assert {row[0] for row in rows("SELECT operator_id FROM archive_checks")} == {"op_a", "op_b", "op_poor"}


@pytest.mark.usefixtures("a_month")
@pytest.mark.parametrize("stage", ["seal_at", "escrow_deadline"])
def test_the_rows_of_a_failed_round_go_too(stage: str) -> None:
    operators = [an_operator("a", funds=0)]
    round_id = a_round(operators)
    submit(round_id, "op_a", some_tickets(3))
    if stage == "escrow_deadline":
        manifest(round_id, "op_a")
    move_clock_to(round_id, stage)
    work(round_id)
    assert rows("SELECT state FROM rounds") == [("FAILED",)]
    age(round_id, 31)
    do_what_is_due()
    assert not has_rows(round_id)


@pytest.mark.parametrize("state", [State.OPEN, State.SEALING, State.ESCROWED, State.DRAWN, State.SETTLED])
def test_the_database_keeps_the_rows_of_a_round_that_is_not_finished(state: State) -> None:
    operators = some_operators(1)
    round_id = a_played_round(operators, state)
    assert refused(f"SELECT drop_tickets({round_id})") == f"round {round_id} is {state.value}"
    assert refused("SELECT drop_tickets(99)") == "there is no round 99"
    assert has_rows(round_id)


@pytest.mark.usefixtures("a_month")
def test_the_database_keeps_rows_whose_archives_were_not_found_whole_or_that_are_attached() -> None:
    round_id = a_closed_round()
    about = f"in round {round_id} was not found whole"
    assert refused(f"SELECT drop_tickets({round_id})") == f"the archive of op_a {about}"
    with transaction() as session:
        assert check_next_archive(session, 30) is not None
    assert refused(f"SELECT drop_tickets({round_id})") == f"the archive of op_b {about}"
    with transaction() as session:
        check_next_archive(session, 30)
        assert check_next_archive(session, 30) is None
        assert droppable_rounds(session, 30) == [round_id]
    assert refused(f"SELECT drop_tickets({round_id})") == f"the tickets of round {round_id} are not detached"
    assert detach_tickets(round_id)
    late = f"the archive of op_a in round {round_id} was not read in this transaction"
    assert refused(f"SELECT drop_tickets({round_id})") == late
    execute("UPDATE archive_checks SET sha256 = 'of something else' WHERE operator_id = 'op_b'")
    assert refused(f"SELECT drop_tickets({round_id})") == f"the archive of op_b {about}"
    execute("UPDATE round_pieces SET due_at = now() WHERE operator_id = 'op_a' AND kind = 'recount'")
    assert refused(f"SELECT drop_tickets({round_id})") == f"round {round_id} has work left"


@pytest.mark.usefixtures("a_month")
def test_a_damaged_archive_keeps_its_rounds_rows_and_no_others(caplog: pytest.LogCaptureFixture) -> None:
    operators = some_operators(2)
    damaged, sound = a_closed_round(31, operators), a_closed_round(31, operators)
    tampered(A_FLIPPED_BYTE.format(f"r{damaged}/op\\_a/%"))
    do_what_is_due()
    assert (has_rows(damaged), has_rows(sound)) == (True, False)
    errors = [record for record in told_by_chores(caplog) if record.levelname == "ERROR"]
    assert [(record.round, record.operator) for record in errors] == [(damaged, "op_a")]  # type: ignore[attr-defined]
    assert do_what_is_due() == 1  # It is looked at again in an hour, not at once.
    execute("UPDATE archive_checks SET checked_at = checked_at - interval '61 minutes'")
    assert do_what_is_due() == 2
    assert has_rows(damaged)


@pytest.mark.usefixtures("a_month")
@pytest.mark.parametrize("happened", [A_FLIPPED_BYTE, "DELETE FROM archive_files WHERE key LIKE '{}'"])
def test_an_archive_lost_after_its_check_keeps_the_rows_of_its_round(
    happened: str, caplog: pytest.LogCaptureFixture
) -> None:
    round_id = a_closed_round()
    with transaction() as session:
        while check_next_archive(session, 30):
            pass
        assert droppable_rounds(session, 30) == [round_id]
    tampered(happened.format(f"r{round_id}/op\\_b/%"))
    do_what_is_due()
    assert has_rows(round_id)
    assert rows("SELECT operator_id, intact FROM archive_checks ORDER BY 1") == [("op_a", True), ("op_b", False)]
    assert [(record.message, record.operator) for record in told_by_chores(caplog)] == [("archive damaged", "op_b")]  # type: ignore[attr-defined]


@pytest.mark.usefixtures("a_month")
def test_rounds_from_before_there_were_archives_keep_their_rows() -> None:
    round_id = a_closed_round()
    execute("ALTER TABLE ticket_archives DISABLE TRIGGER USER")
    execute("DELETE FROM ticket_archives")
    do_what_is_due()
    assert has_rows(round_id)


@pytest.mark.usefixtures("a_month")
@pytest.mark.parametrize(
    "step", ["check_next_archive", "droppable_rounds", "detach_tickets", "check_archives", "drop_tickets", "put_off"]
)
def test_killed_at_any_step_the_next_one_goes_on(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    round_id = a_closed_round()
    done = getattr(chores, step)

    def and_then_killed(*arguments: object) -> None:
        done(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(chores, step, and_then_killed)
        with pytest.raises(KeyboardInterrupt):
            do_what_is_due()
    assert has_rows(round_id)
    assert rows("SELECT count(*) FROM ticket_drops") == [(0,)]
    do_what_is_due()
    assert not has_rows(round_id)
    assert rows("SELECT tickets FROM ticket_drops") == [(60,)]


@pytest.mark.usefixtures("a_month")
def test_who_reads_all_tickets_makes_it_wait_and_the_next_one_finishes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a backup does: it holds the table of all tickets for as long as it takes."""
    monkeypatch.setattr(ticket_drops, "LOCK_SECONDS", 0.1)
    operators = some_operators(2)
    first, second = a_closed_round(31, operators), a_closed_round(31, operators)
    with transaction() as backup:
        backup.execute(text("SELECT count(*) FROM tickets"))
        do_what_is_due()
        assert (has_rows(first), has_rows(second)) == (True, True)
        # It was left half detached, which those who read the round itself do not notice, nor those who open another.
        with transaction() as session:
            assert len(list(stream_tickets(session, first, "op_a"))) == 30
        assert rows("SELECT count(*) FROM pg_inherits WHERE inhdetachpending") == [(1,)]
        take_part(a_round(operators), operators)
    do_what_is_due()
    assert (has_rows(first), has_rows(second)) == (False, False)
    assert rows("SELECT count(*) FROM pg_inherits WHERE inhdetachpending") == [(0,)]
    assert rows("SHOW lock_timeout") == rows("SHOW statement_timeout") == [("0",)]


@pytest.mark.usefixtures("a_month")
def test_who_reads_the_rows_of_a_round_is_not_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ticket_drops, "LOCK_SECONDS", 0.1)
    round_id = a_closed_round()
    with transaction() as reader:
        reading = stream_tickets(reader, round_id, "op_a")
        next(reading)
        do_what_is_due()
        assert len(list(reading)) == 29
    assert has_rows(round_id)
    do_what_is_due()
    assert not has_rows(round_id)


@pytest.mark.usefixtures("a_month")
def test_nobody_who_sells_or_reads_in_other_rounds_waits_for_it() -> None:
    """With a drop held open in the middle, others come and go."""
    operators = some_operators(2)
    old = a_closed_round(31, operators)
    selling = a_round(operators)
    with transaction() as session:
        while check_next_archive(session, 30):
            pass
    assert detach_tickets(old)
    with transaction() as dropping:
        assert check_archives(dropping, old) is None
        assert drop_tickets(dropping, old)
        with engine().connect() as others:
            others.execute(text("SET lock_timeout = '5s'"))
            others.execute(text("SELECT count(*) FROM tickets"))
            others.rollback()
        done = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(take_part, selling, operators).add_done_callback(lambda _: done.set())
            assert done.wait(30)
    assert not has_rows(old)
    assert rows("SELECT count(*) FROM tickets") == [(60,)]


@pytest.mark.usefixtures("a_month")
def test_many_workers_at_once_do_it_once() -> None:
    round_id = a_closed_round()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: do_what_is_due(), range(4)))
    do_what_is_due()
    assert not has_rows(round_id)
    assert rows("SELECT count(*) FROM ticket_drops") == [(1,)]
