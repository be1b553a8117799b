"""Hundreds of steps of players, a provider and a worker who do everything in any order and twice: the books hold after
each.
"""

from __future__ import annotations

import os
from random import Random
from typing import Any
from uuid import UUID

from sqlalchemy import select, update

from player.models.books import books
from player.models.payments import Payment, ask_deposit, ask_withdrawal, end_payment
from player.models.prizes import Prize, claim_prize
from player.models.purchases import buy_ticket
from player.models.round_money import refund_round, refund_ticket, settle_sales
from player.models.rounds import Round
from player.models.session import transaction
from player.models.tickets import Ticket
from protocol.errors import LotteryError
from tests.player.factories import a_player, an_open_round

STEPS = 250
WEIGHTS = {
    "deposit": 20, "end": 30, "withdraw": 10, "buy": 30, "win": 10, "claim": 20, "refund": 5, "fail": 2, "settle": 2,
}  # fmt: skip


class Walk:
    """One step at a time, drawn from ``random``; what is refused is a step as well."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.players = [a_player().id for _ in range(3)]
        self.rounds = [an_open_round(number) for number in (1, 2, 3)]
        self.done: dict[str, int] = {}

    def step(self) -> None:
        name = self.random.choice(
            [
                "deposit",
                "deposit",
                "end",
                "end",
                "end",
                "withdraw",
                "buy",
                "buy",
                "buy",
                "win",
                "claim",
                "claim",
                "refund",
            ]
            + ["fail", "settle"] * (self.random.random() < 0.1)
        )
        try:
            with transaction() as session:
                getattr(self, name)(session)
        except LotteryError as refusal:
            name = refusal.code
        self.done[name] = self.done.get(name, 0) + 1

    def deposit(self, session: Any) -> None:
        ask_deposit(session, self.random.choice(self.players), self.random.randrange(1, 20_000_000))

    def withdraw(self, session: Any) -> None:
        ask_withdrawal(session, self.random.choice(self.players), self.random.randrange(1, 9_000_000), "bank")

    def end(self, session: Any) -> None:
        payment = self._any(session, Payment.id)
        if payment is not None:
            row = session.get_one(Payment, payment)
            completed, amount = self.random.random() < 0.8, row.amount + (self.random.random() < 0.05)
            end_payment(session, UUID(str(payment)), completed=completed, amount=amount, reference=None)

    def buy(self, session: Any) -> None:
        buy_ticket(session, self.random.choice(self.players), None, True, self.random.choice([None, *self.rounds]))

    def win(self, session: Any) -> None:
        ticket = self._any(session, Ticket.id, Ticket.status == "active")
        if ticket is not None:
            row, tier = session.get_one(Ticket, ticket), self.random.randrange(6)
            known = select(Prize.id).where(Prize.ticket == ticket, Prize.tier == tier)
            if session.scalars(known).first() is None:
                amount = self.random.choice([None, 1, 5_000_000])
                session.add(
                    Prize(ticket=row.id, player_id=row.player_id, round_id=row.round_id, tier=tier, amount=amount)
                )

    def claim(self, session: Any) -> None:
        prize = self._any(session, Prize.id)
        if prize is not None:
            claim_prize(session, self.random.choice(self.players), prize)

    def refund(self, session: Any) -> None:
        ticket_id = self._any(session, Ticket.ticket_id, Ticket.round_id.in_(self.rounds))
        if ticket_id is not None:
            refund_ticket(session, ticket_id)

    def fail(self, session: Any) -> None:
        self._end_round(session, "failed")

    def settle(self, session: Any) -> None:
        self._end_round(session, "payable")

    def _end_round(self, session: Any, stage: str) -> None:
        number = self.random.choice(self.rounds)
        session.execute(update(Round).where(Round.id == number).values(stage=stage))
        if stage == "failed":
            refund_round(session, number)
        else:
            settle_sales(session, number)
        self.rounds.remove(number)
        self.rounds.append(an_open_round(number + 3))

    def _any(self, session: Any, column: Any, *which: Any) -> Any:
        found = list(session.scalars(select(column).where(*which).order_by(column)))
        return self.random.choice(found) if found else None


def test_the_books_hold_whatever_happens_in_whatever_order(node: str) -> None:
    seed = os.environ["HYPOTHESIS_SEED"]
    walk = Walk(Random(seed))
    for count in range(STEPS):
        walk.step()
        with transaction() as session:
            assert books(session).faults == (), f"after step {count} of seed {seed}: {walk.done}"
    assert walk.done["buy"] > 0
