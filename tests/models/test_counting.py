"""Counting quickly: exact while there are few, the statistics' word above, and never fewer than were seen."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from models.counting import count_quickly
from models.deliveries import announce
from models.session import transaction
from tests.factories import an_operator

pytestmark = pytest.mark.usefixtures("house")

ROWS = "SELECT FROM deliveries WHERE due_at <= now()"
OF_ONE = f"{ROWS} AND operator_id = :operator"


@pytest.fixture
def fifty(house: None) -> None:
    """Fifty deliveries that are due, to one operator."""
    an_operator("a")
    with transaction() as session:
        for _ in range(50):
            announce(session, "round.sealed", ["op_a"], None, {})


@pytest.fixture
def exact_up_to_ten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("models.counting.EXACT_UP_TO", 10)


@pytest.mark.usefixtures("fifty")
def test_few_are_counted() -> None:
    with transaction() as session:
        assert count_quickly(session, ROWS) == 50
        assert count_quickly(session, OF_ONE, {"operator": "op_a"}) == 50
        assert count_quickly(session, OF_ONE, {"operator": "op_b"}) == 0


@pytest.mark.usefixtures("fifty", "exact_up_to_ten")
def test_many_are_estimated_from_statistics() -> None:
    with transaction() as session:
        session.execute(text("ANALYZE deliveries"))
        assert count_quickly(session, ROWS) == pytest.approx(50, abs=10)
        assert count_quickly(session, OF_ONE, {"operator": "op_a"}) == pytest.approx(50, abs=10)
        assert count_quickly(session, OF_ONE, {"operator": "op_b"}) == 0


@pytest.mark.usefixtures("exact_up_to_ten")
def test_what_was_seen_is_not_taken_back(request: pytest.FixtureRequest) -> None:
    with transaction() as session:
        session.execute(text("ANALYZE deliveries"))
    request.getfixturevalue("fifty")
    with transaction() as session:
        assert count_quickly(session, ROWS) >= 11
