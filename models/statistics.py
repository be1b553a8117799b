"""Figures of the lottery as a whole: what is counted over all rounds and operators, and which draw comes next.

The one rule kept here: nothing is counted twice in two places; every figure is read from the rows it is about, in a
fixed number of queries.
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Double, and_, exists, func, select
from sqlalchemy.orm import Session, aliased

from models.operators import Operator
from models.participation import Participation
from models.rounds import Round
from protocol.lifecycle import DRAWN_STATES, FINISHED, State

UNDRAWN = tuple(state for state in State if state not in DRAWN_STATES and state not in FINISHED)
"""States of rounds whose draw is still to come."""
RUNNING = tuple(state for state in State if state not in FINISHED)
"""States of rounds that still sell, wait or are counted."""


@dataclass(frozen=True)
class NextDraw:
    """The draw that comes next, and the price of its tickets (micro-USDC)."""

    round_id: int
    at: datetime
    ticket_price: int


def next_draw(session: Session) -> NextDraw | None:
    """The earliest draw that is still to come; None while no round is on."""
    row = session.scalars(
        select(Round).where(Round.state.in_(UNDRAWN)).order_by(Round.scheduled_draw_time, Round.id).limit(1)
    ).first()
    return NextDraw(row.id, row.scheduled_draw_time, row.parsed_rules.ticket_price) if row else None


def rounds_by_state(session: Session) -> dict[State, int]:
    """How many rounds are in each state that has any."""
    rows = session.execute(select(Round.state, func.count()).group_by(Round.state))
    return {state: count for state, count in rows}  # noqa: C416 - rows are not pairs to a type checker


def longest_overdue_seconds(session: Session) -> float:
    """For how long a step of a round has been due, of the round that is furthest behind; 0.0 when none is.

    A round that waits to be sealed on top of the one before it is not behind: that one is, if anything.
    """
    before = aliased(Round)
    waits = and_(Round.state == State.SEALING, exists().where(before.id == Round.id - 1, before.state.not_in(FINISHED)))
    oldest = select(func.min(Round.due_at)).where(Round.due_at <= func.now(), ~waits).scalar_subquery()
    return session.scalar(select(func.extract("epoch", func.now() - oldest).cast(Double))) or 0.0


def operator_counts(session: Session) -> tuple[int, int]:
    """``(all operators, active ones)``."""
    row = session.execute(select(func.count(), func.count().filter(Operator.active)).select_from(Operator)).one()
    return row[0], row[1]


def tickets_in_running_rounds(session: Session) -> int:
    """Tickets on record in rounds that are neither settled nor failed; without those of excluded operators."""
    return int(
        session.scalar(
            select(func.coalesce(func.sum(Participation.ticket_count), 0))
            .join(Round, Round.id == Participation.round_id)
            .where(Round.state.in_(RUNNING), Participation.excluded_at.is_(None))
        )
        or 0
    )
