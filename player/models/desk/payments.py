"""Prizes and payments over all players, as staff looks for them.

One rule: newest first, one page at a time.
"""

from sqlalchemy import select
from sqlalchemy.orm import Session

from player.models.payments import Payment
from player.models.prizes import Prize
from player.models.tickets import Ticket


def find_prizes(
    session: Session, limit: int, offset: int, round_id: int | None, player_id: int | None, status: str | None
) -> list[tuple[Prize, str]]:
    """A page of prizes, newest first, each with its ticket's id as the coordinator knows it."""
    wanted = select(Prize, Ticket.ticket_id).join(Ticket, Ticket.id == Prize.ticket).order_by(Prize.id.desc())
    if round_id is not None:
        wanted = wanted.where(Prize.round_id == round_id)
    if player_id is not None:
        wanted = wanted.where(Prize.player_id == player_id)
    if status is not None:
        wanted = wanted.where(Prize.status == status)
    return [(prize, ticket) for prize, ticket in session.execute(wanted.limit(limit).offset(offset))]


def find_payments(
    session: Session, limit: int, offset: int, player_id: int | None, kind: str | None, status: str | None
) -> list[Payment]:
    """A page of deposits and withdrawals, newest first."""
    wanted = select(Payment).order_by(Payment.created_at.desc(), Payment.id).limit(limit).offset(offset)
    if player_id is not None:
        wanted = wanted.where(Payment.player_id == player_id)
    if kind is not None:
        wanted = wanted.where(Payment.kind == kind)
    if status is not None:
        wanted = wanted.where(Payment.status == status)
    return list(session.scalars(wanted))
