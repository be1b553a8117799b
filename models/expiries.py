"""Expiries: prizes that nobody claimed in time go back to the reserve, and the next draw finds them there.

The one rule kept here: a prize's deadline decides, by the database's clock, and not when somebody got round to it. A
round's prizes expire once, together, and what they come to is counted into exactly one later draw.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import (
    TIMESTAMP,
    CheckConstraint,
    ForeignKey,
    Index,
    func,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.orm import Mapped, Session, mapped_column

from models.base import Base, Instant, Micro
from models.draws import Draw, WinningTicket
from models.ledger import RESERVE, Account
from models.participation import Participation
from models.rounds import Round
from protocol.lifecycle import State


class Expiry(Base):
    """When a settled round's prizes expire; once they have, how many it were, and what they come to, micro-USDC.

    ``counted_in`` is the round whose ``reserve0`` holds that amount first.
    """

    __tablename__ = "expiries"
    __table_args__ = (
        CheckConstraint(
            "(expired_at IS NULL) = (prizes IS NULL) AND (expired_at IS NULL) = (amount IS NULL)", name="whole"
        ),
        CheckConstraint("amount >= 0", name="not_negative"),
        CheckConstraint("counted_in IS NULL OR expired_at IS NOT NULL AND counted_in > round_id", name="counted_after"),
        Index("ix_expiries_due", "expires_at", postgresql_where=text("expired_at IS NULL")),
        Index("ix_expiries_counted_in", "counted_in"),
    )

    round_id: Mapped[int] = mapped_column(ForeignKey("rounds.id"), primary_key=True, autoincrement=False)
    expires_at: Mapped[Instant]
    expired_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    prizes: Mapped[int | None]
    amount: Mapped[Micro | None]
    counted_in: Mapped[int | None] = mapped_column(ForeignKey("rounds.id"))


class Unclaimed(NamedTuple):
    """One operator's prizes of a round that were not claimed in time: how many, and their sum, micro-USDC."""

    operator_id: str
    prizes: int
    amount: int


class ReserveCredit(NamedTuple):
    """What an earlier round's expired prizes brought into the reserve, micro-USDC."""

    round_id: int
    amount: int


def plan_expiry(session: Session, round_id: int, now: datetime, days: int) -> None:
    """Note, when a round settles, when its prizes will expire. Without winners there is nothing to note.

    Prizes are claimed from settlement on. A round held up until after its own deadline gives ``days`` anew.
    """
    deadline = session.scalars(
        select(func.max(WinningTicket.claim_deadline)).where(WinningTicket.round_id == round_id)
    ).first()
    if deadline is None:
        return
    if deadline <= now:
        deadline = now + timedelta(days=days)
        session.execute(
            update(WinningTicket)
            .where(WinningTicket.round_id == round_id)
            .values(claim_deadline=deadline)
            .execution_options(synchronize_session=False)
        )
    session.add(Expiry(round_id=round_id, expires_at=deadline))
    session.flush()


def take_due(session: Session) -> Expiry | None:
    """Take the round whose prizes should have expired longest ago; None when there is none that is free.

    Every report on the round is over then, and those that wait are late: they come after the deadline.
    """
    due = (
        select(Expiry)
        .where(Expiry.expired_at.is_(None), Expiry.expires_at < func.clock_timestamp())
        .order_by(Expiry.expires_at)
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    taken = session.scalars(due).first()
    if taken is not None:
        parts = select(Participation.operator_id).where(Participation.round_id == taken.round_id)
        session.execute(parts.order_by(Participation.operator_id).with_for_update(key_share=True)).all()
    return taken


def unclaimed(session: Session, round_id: int) -> Sequence[Unclaimed]:
    """What was not claimed by its deadline, of each operator that has any, in the byte order of the ids."""
    found = session.execute(
        select(WinningTicket.operator_id, func.count(), func.sum(WinningTicket.prize_usdc))
        .where(
            WinningTicket.round_id == round_id,
            or_(WinningTicket.claimed_at.is_(None), WinningTicket.claimed_at > WinningTicket.claim_deadline),
        )
        .group_by(WinningTicket.operator_id)
        .order_by(WinningTicket.operator_id)
    )
    return [Unclaimed(operator_id, prizes, int(amount or 0)) for operator_id, prizes, amount in found]


def reserve_for(session: Session, round_id: int) -> int:
    """``reserve0`` of a round that is being drawn, what the last settled round left, and every credit since.

    In micro-USDC. The credits counted here are this round's for ever. One that is on its way counts for the next round.
    """
    session.execute(
        update(Expiry)
        .where(Expiry.expired_at.is_not(None), Expiry.counted_in.is_(None))
        .values(counted_in=round_id)
        .execution_options(synchronize_session=False)
    )
    left = session.scalars(
        select(Draw.terms["reserve1"].astext)
        .join(Round, Round.id == Draw.round_id)
        .where(Draw.round_id < round_id, Round.state.in_((State.SETTLED, State.CLOSED)))
        .order_by(Draw.round_id.desc())
        .limit(1)
    ).first()
    return int(left or 0) + sum(credit.amount for credit in reserve_credits(session, round_id))


def reserve_credits(session: Session, round_id: int) -> Sequence[ReserveCredit]:
    """The credits counted into a round's ``reserve0``, by the round they come from; those of nothing are left out."""
    found = session.execute(
        select(Expiry.round_id, Expiry.amount)
        .where(Expiry.counted_in == round_id, Expiry.amount > 0)
        .order_by(Expiry.round_id)
    )
    return [ReserveCredit(earlier, amount or 0) for earlier, amount in found]


def reserve_beyond_credits(session: Session) -> int:
    """What is in the reserve without the credits that no draw has counted yet, micro-USDC."""
    # One statement, one moment: an expiry that commits meanwhile is in both or in neither.
    held = select(func.coalesce(func.max(Account.balance), 0)).where(Account.id == RESERVE).scalar_subquery()
    waiting = select(func.coalesce(func.sum(Expiry.amount), 0)).where(Expiry.counted_in.is_(None)).scalar_subquery()
    return int(session.scalars(select(held - waiting)).one())
