"""The operator's staff in tests: a client with a key, and a little of everything for it to look at."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from flask.testing import FlaskClient
from sqlalchemy.orm import Session

from player.models.ledger import transfer
from player.models.mails import Mail
from player.models.payments import Payment
from player.models.players import Player
from player.models.prizes import Prize
from player.models.rounds import Round
from player.models.session import transaction
from player.models.sessions import PlayerSession
from player.models.staff import issue_staff_key
from player.models.tickets import Submission, Ticket
from player.models.transactions import Transaction
from player.models.webhooks import Webhook
from tests.player.factories import TICKET_PRICE, an_open_round

NUMBERS = ("jackpot_number", "bonus1", "bonus2", "bonus3", "bonus4", "bonus5")


@dataclass(frozen=True)
class Staff:
    """Somebody with a staff key."""

    client: FlaskClient
    key: str

    def get(self, path: str, status: int = 200) -> Any:
        return self._read(self.client.get(f"/api/admin/{path}", headers=self.headers), status)

    def post(self, path: str, body: dict[str, Any], status: int = 200) -> Any:
        return self._read(self.client.post(f"/api/admin/{path}", headers=self.headers, json=body), status)

    @property
    def headers(self) -> dict[str, str]:
        return {"X-Admin-Key": self.key}

    def _read(self, answer: Any, status: int) -> Any:
        assert answer.status_code == status, answer.text
        return answer.json


def some_staff(client: FlaskClient, name: str = "Ana") -> Staff:
    """Somebody who may look at everything."""
    with transaction() as session:
        _, key = issue_staff_key(session, name)
    return Staff(client, key)


def a_draw(round_id: int, **changes: object) -> dict[str, Any]:
    """A draw as the coordinator publishes it (interface section 2.3)."""
    names = ("jackpotNumber", "bonus1", "bonus2", "bonus3", "bonus4", "bonus5")
    draw: dict[str, Any] = {
        "drawId": f"draw_{round_id}",
        "roundId": round_id,
        "drawSeed": "ab" * 32,
        **dict.fromkeys(names, 1),
        "jackpotWon": False,
        "jackpotWinnerCount": 0,
        "jackpotAmount": "0",
        "createdAt": "2026-01-02T03:04:05.678Z",
    }
    return {**draw, **changes}


def a_ticket(session: Session, player_id: int, round_id: int, name: str) -> Ticket:
    """A ticket that was bought and paid for."""
    transfer(session, f"purchase:{name}", f"player:{player_id}", f"sales:{round_id}", TICKET_PRICE)
    session.add(Transaction(player_id=player_id, type="purchase", amount=-TICKET_PRICE, reference=name))
    known = {
        "ticket_id": name,
        "player_id": player_id,
        "round_id": round_id,
        "price": TICKET_PRICE,
        "is_quick_pick": True,
    }
    row = Ticket(**dict.fromkeys(NUMBERS, 1), **known)
    session.add(row)
    session.flush()
    return row


def a_busy_house() -> None:
    """Players 1 (Ana, with money and a winning ticket) and 2 (Bo, with nothing); round 1 payable, round 2 on sale."""
    an_open_round(1)
    an_open_round(2)
    with transaction() as session:
        for name in ("Ana", "Bo"):
            session.add(Player(email=f"{name}@example.com", password_hash="secret", display_name=name))
            session.flush()
        session.add(PlayerSession(player_id=1))
        transfer(session, "deposit:1", "world", "player:1", 10 * TICKET_PRICE)
        deposit = Transaction(player_id=1, type="deposit", amount=10 * TICKET_PRICE)
        session.add(deposit)
        session.flush()
        session.add(Payment(player_id=1, transaction_id=deposit.id, kind="deposit", amount=10 * TICKET_PRICE))
        first = session.get_one(Round, 1)
        won, lost, active = (a_ticket(session, 1, *of) for of in ((1, "1-won"), (1, "1-lost"), (2, "2-active")))
        batch = Submission(round_id=1, tickets=2, attempts=1, accepted_at=datetime.now(UTC))
        session.add(batch)
        session.flush()
        won.submission_id = lost.submission_id = batch.id
        won.status, lost.status, won.winnings = "won", "lost", 5_000_000
        session.add(Prize(ticket=won.id, player_id=1, round_id=1, tier=5, amount=5_000_000))
        first.draw, first.ticket_count = a_draw(1), 2
        first.stage, first.state = "payable", "SETTLED"
        session.add(Webhook(delivery_id="d-1", event="round.drawn", round_id=1, body={"event": "round.drawn"}))
        session.add(Mail(player_id=1, address="Ana@example.com", subject="Welcome", body="a secret"))
        assert active.status == "active"
