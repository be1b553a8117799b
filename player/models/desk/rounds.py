"""Rounds as staff looks at them: how far our work has come, what was sold, and what is on its way.

One rule: newest first, one page at a time; sums are made for one round only.
"""

from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from player.models.prizes import Prize
from player.models.rounds import Round
from player.models.tickets import Submission, Ticket
from protocol.errors import NotFound


@dataclass(frozen=True)
class Counted:
    """How many there are of a kind, and what they come to, micro-USDC."""

    status: str
    count: int
    amount: int


@dataclass(frozen=True)
class RoundFile:
    """One round with its counts. ``unsent`` tickets belong to no batch yet; ``open`` batches were not accepted yet."""

    round: Round
    tickets: list[Counted]
    unsent: int
    submissions: int
    open_submissions: int
    prizes: list[Counted]


def find_rounds(session: Session, limit: int, offset: int, stage: str | None) -> list[Round]:
    """A page of rounds, newest first."""
    wanted = select(Round).order_by(Round.id.desc()).limit(limit).offset(offset)
    return list(session.scalars(wanted if stage is None else wanted.where(Round.stage == stage)))


def round_file(session: Session, round_id: int) -> RoundFile:
    """One round.

    :raises NotFound: we know no such round.
    """
    found = session.get(Round, round_id)
    if found is None:
        raise NotFound("no such round")
    accepted = func.count(Submission.accepted_at)
    made, taken = session.execute(select(func.count(), accepted).where(Submission.round_id == round_id)).one()
    unsent = select(func.count()).where(Ticket.round_id == round_id, Ticket.submission_id.is_(None))
    return RoundFile(
        round=found,
        tickets=tickets_of(session, round_id),
        unsent=session.scalars(unsent).one(),
        submissions=made,
        open_submissions=made - taken,
        prizes=prizes_of(session, round_id),
    )


def tickets_of(session: Session, round_id: int) -> list[Counted]:
    """The round's tickets by status, and their prices."""
    by = select(Ticket.status, func.count(), func.sum(Ticket.price)).where(Ticket.round_id == round_id)
    rows = session.execute(by.group_by(Ticket.status).order_by(Ticket.status))
    return [Counted(status, count, int(amount or 0)) for status, count, amount in rows]


def prizes_of(session: Session, round_id: int) -> list[Counted]:
    """The round's prizes by status; those without an amount yet count with 0."""
    by = select(Prize.status, func.count(), func.coalesce(func.sum(Prize.amount), 0)).where(Prize.round_id == round_id)
    rows = session.execute(by.group_by(Prize.status).order_by(Prize.status))
    return [Counted(status, count, int(amount or 0)) for status, count, amount in rows]


def find_tickets(
    session: Session, limit: int, offset: int, round_id: int | None, player_id: int | None, status: str | None
) -> list[Ticket]:
    """A page of tickets, newest first."""
    wanted = select(Ticket).order_by(Ticket.id.desc()).limit(limit).offset(offset)
    if round_id is not None:
        wanted = wanted.where(Ticket.round_id == round_id)
    if player_id is not None:
        wanted = wanted.where(Ticket.player_id == player_id)
    if status is not None:
        wanted = wanted.where(Ticket.status == status)
    return list(session.scalars(wanted))


def find_submissions(
    session: Session, limit: int, offset: int, round_id: int | None, accepted: bool | None
) -> list[Submission]:
    """A page of batches, newest first."""
    wanted = select(Submission).order_by(Submission.id.desc()).limit(limit).offset(offset)
    if round_id is not None:
        wanted = wanted.where(Submission.round_id == round_id)
    if accepted is not None:
        wanted = wanted.where(Submission.accepted_at.is_not(None) if accepted else Submission.accepted_at.is_(None))
    return list(session.scalars(wanted))
