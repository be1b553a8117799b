"""Queueing failed deliveries again: exactly those that fit, whatever combination of filters is given."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from uuid import UUID

import pytest
from sqlalchemy import event as hooks
from sqlalchemy import text

from models.deliveries import announce
from models.delivery_search import Wanted
from models.requeue import any_failed, count_failed, preview, requeue, requeue_some
from models.requeue_jobs import filters_of, wanted_of
from models.session import database_now, engine, transaction
from tests.factories import a_round, rows, some_operators
from tests.requeues import a_job, failed, queued

pytestmark = pytest.mark.usefixtures("house")

HALF = timedelta(minutes=30)


def test_no_filter_lets_through_what_it_does_not_name() -> None:
    """Every combination of filters over every combination of what they look at."""
    operators = some_operators(2)
    rounds = [a_round(operators), None]
    events, errors = ("round.drawn", "round.sealed"), ("timeout", "dns")
    for operator_id, round_id, event, error in product(operators, rounds, events, errors):
        failed(2, operator_id, event, error, round_id)
    with transaction() as session:  # one of each two is older
        session.execute(
            text(
                "UPDATE deliveries SET created_at = created_at - interval '1 hour' WHERE id IN (SELECT min(id::text)"
                "::uuid FROM deliveries WHERE status = 'failed' GROUP BY operator_id, round_id, event, error_class)"
            )
        )
        announce(session, "round.drawn", operators, rounds[0], {})
        split, now = database_now(session) - timedelta(minutes=90), database_now(session)
    job_id = a_job()
    fields = "operator_id, round_id, event, error_class, created_at"
    there = {row[0]: row[1:] for row in rows(f"SELECT id, {fields} FROM deliveries WHERE status = 'failed'")}
    assert len(there) == 32
    for operator_id, round_id, event, error, since, until in product(
        (None, "op_a"), (None, rounds[0]), (None, "round.drawn"), (None, "dns"), (None, split), (None, split)
    ):
        wanted = Wanted(None, operator_id, round_id, event, error, since, until)
        fits = {
            delivery_id
            for delivery_id, (its_operator, its_round, its_event, its_error, written) in there.items()
            if operator_id in (None, its_operator)
            and round_id in (None, its_round)
            and event in (None, its_event)
            and error in (None, its_error)
            and (since is None or written >= since)
            and (until is None or written < until)
        }
        assert queued_by(wanted, job_id, now) == fits, wanted


def queued_by(wanted: Wanted, job_id: int, now: datetime) -> set[UUID]:
    """What is queued again by these filters, which is then undone; all ways to count agree."""
    with transaction() as session:
        matched = count_failed(session, wanted, now)
        assert preview(session, wanted, now).matched == matched
        assert any_failed(session, wanted, now) == bool(matched)
        undo = session.begin_nested()
        found = requeue_some(session, job_id, wanted, now, 1_000, 1_000)
        undo.rollback()
        assert len(found) == len(set(found)) == matched
        return set(found)


def test_a_preview_reads_an_index_and_not_the_messages() -> None:
    some_operators(1)
    failed(5_000)
    with transaction() as session:  # messages as long as in earnest
        session.execute(text("UPDATE deliveries SET body = convert_to(repeat('x', 1900), 'UTF8')"))
    with engine().connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM FULL deliveries"))
        connection.execute(text("VACUUM ANALYZE deliveries"))
    asked: list[tuple[str, object]] = []
    with transaction() as session:
        now = database_now(session)
        hooks.listen(engine(), "before_cursor_execute", lambda _c, _cur, sql, values, *_: asked.append((sql, values)))
        assert preview(session, Wanted(), now).matched == count_failed(session, Wanted(error_class="timeout"), now)
        for sql, values in tuple(asked):
            plan = session.connection().exec_driver_sql(f"EXPLAIN {sql}", values).scalars().all()
            assert "Index Only Scan using ix_deliveries_failed_of_operator" in "".join(plan), "\n".join(plan)


def test_filters_are_kept_to_the_microsecond_and_read_back_as_they_were() -> None:
    moment = datetime(2026, 1, 31, 20, 0, 0, 123_456, tzinfo=UTC)
    whole = Wanted(None, "op_a", 7, "round.drawn", "timeout", moment, moment + HALF)
    for wanted in (Wanted(), whole, replace(whole, since=None), Wanted(round_id=7)):
        assert wanted_of(filters_of(wanted)) == wanted
    assert filters_of(Wanted()) == {}


def test_a_preview_names_the_ten_largest_of_each_kind() -> None:
    for place, operator_id in enumerate(some_operators(12)):
        failed(12 - place, operator_id, "round.drawn" if place else "round.sealed", "dns" if place else "timeout")
    with transaction() as session:
        found = preview(session, Wanted(), database_now(session))
    assert found.matched == 78
    assert list(found.operators.items()) == [(f"op_{chr(97 + place)}", 12 - place) for place in range(10)]
    assert found.events == {"round.drawn": 66, "round.sealed": 12}
    assert found.error_classes == {"dns": 66, "timeout": 12}


def test_the_oldest_are_queued_again_first_and_a_row_that_somebody_holds_is_left_to_them() -> None:
    some_operators(1)
    first, second, third, _ = failed(4)
    job_id = a_job()
    with transaction() as session, transaction() as other:
        now = database_now(session)
        assert requeue(other, first)
        assert set(requeue_some(session, job_id, Wanted(), now, 3, 100)) == {second, third}
    assert queued() == {first, second, third}


def test_one_queued_again_by_itself_belongs_to_no_job_any_more() -> None:
    some_operators(1)
    [delivery] = failed(1)
    job_id = a_job()
    with transaction() as session:
        requeue_some(session, job_id, Wanted(), database_now(session), 1, 1)
        session.execute(text("UPDATE deliveries SET status = 'failed'"))
        assert requeue(session, delivery)
    assert rows("SELECT requeue_job_id FROM deliveries") == [(None,)]
