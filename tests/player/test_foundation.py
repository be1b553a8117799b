"""What every part of a node stands on: its door answers, and its database refuses what nobody may do."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from player.models.ledger import balance, transfer
from player.models.players import Player
from player.models.rounds import Round
from player.models.session import transaction
from player.models.tickets import Ticket


def _round(**changes: object) -> Round:
    now = datetime.now(UTC)
    values = {
        "id": 7,
        "state": "OPEN",
        "ticket_price": 3_000_000,
        "odds_range": 10_000_000,
        "seal_at": now + timedelta(hours=1),
        "sales_close_at": now + timedelta(minutes=59),
        "scheduled_draw_time": now + timedelta(hours=2),
        "nonce": os.urandom(32),
    }
    return Round(**{**values, **changes})


def _player() -> Player:
    return Player(email="Ana@example.com", password_hash="x", display_name="Ana")


def _ticket(number: str, **changes: object) -> Ticket:
    numbers = {"jackpot_number": 1, **{f"bonus{place}": 1 for place in range(1, 6)}}
    known = {"ticket_id": number, "player_id": 1, "round_id": 7, "is_quick_pick": False, "price": 3_000_000}
    return Ticket(**{**numbers, **known, **changes})


def test_a_node_says_that_it_is_alive_and_ready(client: FlaskClient) -> None:
    assert client.get("/health").json["status"] == "ok"
    assert client.get("/health/ready").json == {"status": "ready"}
    assert client.get("/nothing").json == {"error": "no such path", "code": "not_found"}


def test_money_moves_once_and_is_never_overdrawn(node: str) -> None:
    with transaction() as session:
        assert transfer(session, "deposit:1", "world", "player:1", 5)
        assert not transfer(session, "deposit:1", "world", "player:1", 5)
    with transaction() as session:
        assert (balance(session, "world"), balance(session, "player:1")) == (-5, 5)
    with pytest.raises(IntegrityError, match="not_overdrawn"), transaction() as session:
        transfer(session, "purchase:1", "player:1", "sales:7", 6)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE transfers SET amount = 6",
        "DELETE FROM transfers",
        "DELETE FROM tickets",
        "UPDATE tickets SET bonus1 = 2",
        "UPDATE rounds SET stage = 'selling'",
        "UPDATE players SET self_excluded_until = now()",
        "INSERT INTO players (email, password_hash, display_name) VALUES ('ANA@EXAMPLE.COM', 'x', 'Ana')",
    ],
)
def test_the_database_refuses_what_nobody_may_do(node: str, statement: str) -> None:
    with transaction() as session:
        session.add_all([_player(), _round()])
        session.flush()
        session.add(_ticket("t-1"))
        transfer(session, "deposit:1", "world", "player:1", 5)
        session.execute(text("UPDATE players SET self_excluded_until = now() + interval '1 day'"))
        session.flush()
        session.execute(text("UPDATE rounds SET stage = 'closed'"))
    with pytest.raises(IntegrityError), transaction() as session:
        session.execute(text(statement))


@pytest.mark.parametrize(
    "changes", [{"bonus5": 101}, {"price": 1}, {"status": "won"}, {"jackpot_number": 10_000_001}, {"bonus1": 0}]
)
def test_what_is_no_ticket_of_the_round_cannot_be_sold(node: str, changes: dict[str, object]) -> None:
    with transaction() as session:
        session.add_all([_player(), _round()])
    with pytest.raises(IntegrityError), transaction() as session:
        session.add(_ticket("t-1", **changes))


@pytest.mark.parametrize("changes", [{"stage": "closed"}, {"sales_close_at": datetime(2026, 1, 1, tzinfo=UTC)}])
def test_nothing_is_sold_when_sales_are_over(node: str, changes: dict[str, object]) -> None:
    with transaction() as session:
        session.add_all([_player(), _round(**changes)])
    with pytest.raises(IntegrityError, match="sales of round 7 are over"), transaction() as session:
        session.add(_ticket("t-1"))
