"""Looking at a round: who holds it, calling somebody to it, and what a look came to.

The one rule kept here: a stage changes under the round's lock, and only from the stage that was looked at.
"""

from datetime import datetime

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from player.models.rounds import Round, Stage


class MovedOn(Exception):
    """Somebody else has taken the round to another stage meanwhile; nothing was done."""


def hold(session: Session, round_id: int, stage: Stage) -> Round:
    """The round, locked. Tickets may go on being sold for it until its stage is another one.

    :raises MovedOn: it is in another stage.
    """
    row = session.scalars(select(Round).where(Round.id == round_id).with_for_update(key_share=True)).one()
    if row.stage != stage:
        raise MovedOn
    return row


def wake(session: Session, round_id: int) -> bool:
    """Let a worker look at the round at once; False when we do not know it."""
    known = session.scalars(select(Round.id).where(Round.id == round_id)).first() is not None
    if known:
        due = update(Round).where(Round.id == round_id, Round.due_at > func.clock_timestamp())
        session.execute(due.values(due_at=func.clock_timestamp()))
    return known


def close_sales(session: Session, round_id: int) -> bool:
    """``selling`` → ``closed`` if sales are to be over; tickets that are being sold are waited for, none follows."""
    over = (Round.sales_close_at <= func.clock_timestamp()) | (Round.state != "OPEN")
    closed = update(Round).where(Round.id == round_id, Round.stage == Stage.SELLING, over)
    return session.scalars(closed.values(stage=Stage.CLOSED).returning(Round.id)).first() is not None


def note_look(session: Session, round_id: int, state: str | None, error: str | None) -> None:
    """Write down what a look came to: the coordinator's state, if it told us, and what went wrong, if anything did."""
    found: dict[str, object] = {"last_error": error, "attempts": 0 if error is None else Round.attempts + 1}
    if state is not None:
        found["state"] = state
    session.execute(update(Round).where(Round.id == round_id).values(found))


def end(session: Session, row: Round, stage: Stage, now: datetime, reason: str | None = None) -> None:
    """Put a round away for good; it must be held. Tickets that are being sold are waited for, and none follows."""
    row.stage, row.ended_at, row.due_at, row.failure_reason = stage, now, None, reason
    session.flush()
