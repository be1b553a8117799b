"""What tests of a node are made of: a player with her headers, an open round, money.

One rule: a test says only what it is about; everything else has a value here that is accepted.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from flask.testing import FlaskClient
from sqlalchemy import update

from player.api.tokens import issue_access_token
from player.models.ledger import WORLD, player_account, transfer
from player.models.players import Player
from player.models.prizes import Prize
from player.models.purchases import buy_ticket
from player.models.rounds import Round
from player.models.session import transaction
from player.models.sessions import PlayerSession
from player.models.transactions import Transaction
from protocol.numbers import LABELS, Numbers

PASSWORD = "correct horse battery"
TICKET_PRICE = 3_000_000
NUMBERS = {"jackpotNumber": 7, "bonus1": 1, "bonus2": 2, "bonus3": 3, "bonus4": 4, "bonus5": 5, "isQuickPick": False}

_numbers = count(1)


@dataclass(frozen=True)
class APlayer:
    """A player who is logged in: her id and the headers that say so."""

    id: int
    email: str
    headers: dict[str, str]


def a_player(client: FlaskClient | None = None, *, balance: int = 0, **changes: Any) -> APlayer:
    """A player with a session, ``balance`` micro-USDC, and ``changes`` to her row. She has no
    password: ``registered`` gives one that has."""
    email = changes.pop("email", f"player{next(_numbers)}@example.com")
    with transaction() as session:
        row = Player(**{"email": email, "password_hash": "none", "display_name": "Ana", **changes})
        session.add(row)
        session.flush()
        player_id = row.id
    if balance:
        give_money(player_id, balance)
    return APlayer(player_id, email, bearer(player_id))


def registered(client: FlaskClient, email: str = "ana@example.com", password: str = PASSWORD) -> dict[str, Any]:
    """A player who registered over the API, which costs the hash of a password: the answer she got."""
    answer = client.post("/api/auth/register", json={"email": email, "password": password, "displayName": "Ana"})
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json
    return body


def as_bearer(tokens: dict[str, Any]) -> dict[str, str]:
    """The header that a pair of tokens makes."""
    return {"Authorization": f"Bearer {tokens['accessToken']}"}


def bearer(player_id: int) -> dict[str, str]:
    """The header of a new session of a player."""
    with transaction() as session:
        row = PlayerSession(player_id=player_id)
        session.add(row)
        session.flush()
        token = issue_access_token(player_id, row.id, datetime.now(UTC))
    return {"Authorization": f"Bearer {token}"}


def give_money(player_id: int, amount: int) -> None:
    """Put ``amount`` micro-USDC on a player's account: a deposit that has come in."""
    with transaction() as session:
        row = Transaction(player_id=player_id, type="deposit", amount=amount)
        session.add(row)
        session.flush()
        assert transfer(session, f"given:{row.id}", WORLD, player_account(player_id), amount)


def an_open_round(round_id: int = 7, **changes: Any) -> int:
    """A round that tickets are sold for, its sales open for 59 minutes; its id."""
    now = datetime.now(UTC)
    values = {
        "id": round_id,
        "state": "OPEN",
        "ticket_price": TICKET_PRICE,
        "odds_range": 10_000_000,
        "seal_at": now + timedelta(hours=1),
        "sales_close_at": now + timedelta(minutes=59),
        "scheduled_draw_time": now + timedelta(hours=2),
        "nonce": os.urandom(32),
    }
    with transaction() as session:
        session.add(Round(**{**values, **changes}))
    return round_id


def close_sales(round_id: int = 7) -> None:
    """Nothing is sold for a round any more."""
    with transaction() as session:
        session.execute(update(Round).where(Round.id == round_id).values(stage="closed"))


def a_sold_ticket(who: APlayer, round_id: int = 7, **changes: Any) -> int:
    """A ticket that a player bought for her money, with ``changes`` to its numbers; its id (``Ticket.id``)."""
    numbers = Numbers(**{**dict.fromkeys(LABELS, 1), **changes})
    with transaction() as session:
        return buy_ticket(session, who.id, tuple(numbers), False, round_id).id  # type: ignore[arg-type]


def a_prize(who: APlayer, amount: int | None = 5_000_000, round_id: int = 7, **changes: Any) -> int:
    """A prize of tier 5 for a ticket of its own, which was bought; the prize's id. ``amount`` None: not certain yet."""
    ticket = a_sold_ticket(who, round_id)
    with transaction() as session:
        row = Prize(
            **{"ticket": ticket, "player_id": who.id, "round_id": round_id, "tier": 5, "amount": amount, **changes}
        )
        session.add(row)
        session.flush()
        return row.id
