"""Batches of tickets on their way to the coordinator.

The one rule kept here: a ticket is put into a batch once, before the batch is first sent, so that what is sent again is
what was sent.
"""

from collections.abc import Iterator

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from player.models.tickets import Submission
from player.models.tickets import Ticket as Sold
from protocol.tickets import Ticket

LARGEST = 50_000
_AT_ONCE = 10_000


def has_unsent(session: Session, round_id: int) -> bool:
    """Whether the round has tickets that the coordinator has not confirmed."""
    loose = select(Sold.id).where(Sold.round_id == round_id, Sold.submission_id.is_(None)).limit(1)
    waiting = select(Submission.id).where(Submission.round_id == round_id, Submission.accepted_at.is_(None)).limit(1)
    return session.scalars(loose).first() is not None or session.scalars(waiting).first() is not None


def gather(session: Session, round_id: int, most: int = LARGEST) -> int | None:
    """Put tickets that are in no batch yet into a new one, oldest first; its id, None when there are none."""
    # A row that is locked is being put into a batch by somebody else.
    loose = (
        select(Sold.id)
        .where(Sold.round_id == round_id, Sold.submission_id.is_(None))
        .order_by(Sold.id)
        .limit(most)
        .with_for_update(skip_locked=True)
    )
    ids = list(session.scalars(loose))
    if not ids:
        return None
    batch = Submission(round_id=round_id, tickets=len(ids))
    session.add(batch)
    session.flush()
    for place in range(0, len(ids), _AT_ONCE):
        session.execute(update(Sold).where(Sold.id.in_(ids[place : place + _AT_ONCE])).values(submission_id=batch.id))
    return batch.id


def unconfirmed(session: Session, round_id: int) -> list[int]:
    """The round's batches that the coordinator has not confirmed, oldest first."""
    wanted = select(Submission.id).where(Submission.round_id == round_id, Submission.accepted_at.is_(None))
    return list(session.scalars(wanted.order_by(Submission.id)))


def tickets_of_batch(session: Session, submission_id: int) -> list[Ticket]:
    """A batch's tickets as the coordinator takes them, in the order in which they were sold."""
    return list(_read(session, Sold.submission_id == submission_id, Sold.id))


def tickets_of_round(session: Session, round_id: int) -> Iterator[Ticket]:
    """All of a round's tickets, in the order of their ids by bytes, which is that of the leaves under the root."""
    return _read(session, Sold.round_id == round_id, Sold.ticket_id)


def sold(session: Session, round_id: int) -> int:
    """How many tickets of the round were sold."""
    return session.scalars(select(func.count()).select_from(Sold).where(Sold.round_id == round_id)).one()


def note_attempt(session: Session, submission_id: int) -> None:
    """Count an attempt at sending a batch."""
    session.execute(update(Submission).where(Submission.id == submission_id).values(attempts=Submission.attempts + 1))


def note_outcome(session: Session, submission_id: int, error: str | None) -> None:
    """The coordinator took the batch, or why it did not."""
    values: dict[str, object] = {"last_error": error}
    if error is None:
        values["accepted_at"] = func.coalesce(Submission.accepted_at, func.clock_timestamp())
    session.execute(update(Submission).where(Submission.id == submission_id).values(values))


def doubt_all(session: Session, round_id: int) -> None:
    """Let every batch be sent again: the coordinator has fewer tickets than it confirmed."""
    session.execute(update(Submission).where(Submission.round_id == round_id).values(accepted_at=None))


def _read(session: Session, which: object, order: object) -> Iterator[Ticket]:
    columns = (
        Sold.ticket_id, Sold.jackpot_number, Sold.bonus1, Sold.bonus2, Sold.bonus3, Sold.bonus4, Sold.bonus5,
        Sold.is_quick_pick,
    )  # fmt: skip
    rows = session.execute(
        select(*columns).where(which).order_by(order).execution_options(yield_per=_AT_ONCE)  # type: ignore[arg-type]
    )
    for ticket_id, jackpot, bonus1, bonus2, bonus3, bonus4, bonus5, quick in rows:
        yield Ticket(ticket_id, (jackpot, bonus1, bonus2, bonus3, bonus4, bonus5), quick)
