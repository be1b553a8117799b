"""Rounds that open by themselves, and heartbeats that stay away."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import text

from models.operators import record_heartbeat
from models.session import transaction
from models.settings import SettingsError, settings
from tasks.heartbeats import check_heartbeat
from tasks.opening import open_scheduled_round, plan_schedule
from tests.factories import an_operator, rows, some_operators

pytestmark = pytest.mark.usefixtures("house")


@pytest.fixture
def schedule(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    def plan(cron: str) -> None:
        monkeypatch.setenv("ROUND_SCHEDULE", cron)
        settings.cache_clear()
        with transaction() as session:
            plan_schedule(session)

    return plan


def make_due(days: int = 0) -> None:
    with transaction() as session:
        session.execute(text(f"UPDATE round_schedule SET due_at = now() - interval '{days} days'"))


def test_a_round_opens_when_the_schedule_says_and_invites_everybody_active(schedule: Callable[[str], None]) -> None:
    some_operators(3)
    with transaction() as session:
        session.execute(text("UPDATE operators SET active = false WHERE id = 'op_b'"))
    schedule("0 20 * * *")
    assert open_scheduled_round() is None
    make_due()
    assert open_scheduled_round() == 1
    assert rows("SELECT operator_id FROM participations ORDER BY 1") == [("op_a",), ("op_c",)]
    assert rows("SELECT due_at > now() FROM round_schedule") == [(True,)]
    assert open_scheduled_round() is None


def test_openings_missed_for_a_week_are_made_up_for_once(schedule: Callable[[str], None]) -> None:
    some_operators(1)
    schedule("* * * * *")
    make_due(days=7)
    assert [open_scheduled_round(), open_scheduled_round()] == [1, None]


def test_planning_again_keeps_what_is_due(schedule: Callable[[str], None]) -> None:
    some_operators(1)
    schedule("0 20 * * *")
    make_due(days=1)
    schedule("0 20 * * *")
    assert open_scheduled_round() == 1


def test_without_operators_no_round_opens_and_the_schedule_goes_on(schedule: Callable[[str], None]) -> None:
    schedule("* * * * *")
    make_due()
    assert open_scheduled_round() is None
    assert rows("SELECT due_at > now() FROM round_schedule") == [(True,)]


def test_a_schedule_taken_away_opens_nothing_more(schedule: Callable[[str], None]) -> None:
    some_operators(1)
    schedule("* * * * *")
    make_due()
    schedule("")
    assert open_scheduled_round() is None


def test_what_is_no_cron_expression_is_refused(schedule: Callable[[str], None]) -> None:
    with pytest.raises(SettingsError, match="ROUND_SCHEDULE"):
        schedule("every tuesday")


def test_a_missed_heartbeat_is_counted_and_told_once_a_silence() -> None:
    an_operator("a")
    assert check_heartbeat("op_a") is False  # it never sent one, so none is awaited
    with transaction() as session:
        record_heartbeat(session, "op_a")
    assert check_heartbeat("op_a") is False
    with transaction() as session:
        session.execute(text("UPDATE operators SET due_at = now()"))
    assert [check_heartbeat("op_a"), check_heartbeat("op_a")] == [True, False]
    assert rows("SELECT event, round_id FROM deliveries") == [("operator.heartbeat_missed", None)]
    assert rows("SELECT heartbeats_missed FROM operators") == [(1,)]
