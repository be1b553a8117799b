"""Limits: how much a player allows herself to spend on tickets in a day, a week and a month.

The one rule kept here: what protects the player counts at once, what loosens waits 24 hours. Periods are those of the
calendar in UTC (weeks begin on Monday), and the database's clock says in which of them we are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import CheckConstraint, ForeignKey, func, select
from sqlalchemy.orm import Mapped, Session, mapped_column

from player.models.base import Base, Micro
from player.models.players import Player, assert_not_suspended
from player.models.session import database_now
from player.models.tickets import Ticket
from protocol.errors import Conflict, Forbidden
from protocol.timestamps import format_timestamp

PERIODS = ("day", "week", "month")
WAIT_BEFORE_LOOSENING = timedelta(hours=24)


class Limit(Base):
    """A limit in force, micro-USDC (NULL: none), and the looser one that follows it at ``next_at``."""

    __tablename__ = "limits"
    __table_args__ = (
        CheckConstraint("period IN ('day', 'week', 'month')", name="period"),
        CheckConstraint("amount >= 0", name="amount"),
        CheckConstraint("next_amount >= 0", name="next_amount"),
    )

    player_id: Mapped[int] = mapped_column(ForeignKey("players.id"), primary_key=True)
    period: Mapped[str] = mapped_column(primary_key=True)
    amount: Mapped[Micro | None]
    next_amount: Mapped[Micro | None]
    next_at: Mapped[datetime | None]


@dataclass(frozen=True)
class Standing:
    """What counts now, micro-USDC (None: no limit), and what a player asked to follow it at ``next_at``."""

    amount: int | None = None
    next_amount: int | None = None
    next_at: datetime | None = None


def standing_at(standing: Standing, now: datetime) -> Standing:
    """The same limit with what was asked for in force, once its time has come."""
    if standing.next_at is not None and standing.next_at <= now:
        return Standing(standing.next_amount)
    return standing


def after_asking(standing: Standing, wanted: int | None, now: datetime) -> Standing:
    """What a limit becomes when its player asks for ``wanted`` micro-USDC (None: for no limit at all).

    What is as tight as the limit in force or tighter counts at once, and whatever looser one was waiting is
    forgotten. What is looser waits; if something at least as loose has been waiting, it has waited for this as well.
    """
    standing = standing_at(standing, now)
    if standing.amount is None or (wanted is not None and wanted <= standing.amount):
        return Standing(wanted)
    waited = standing.next_at is not None and _as_loose(standing.next_amount, wanted)
    return Standing(standing.amount, wanted, standing.next_at if waited else now + WAIT_BEFORE_LOOSENING)


def _as_loose(one: int | None, other: int | None) -> bool:
    return one is None or (other is not None and one >= other)


def limits_of(session: Session, player_id: int) -> dict[str, Standing]:
    """A player's limits by period, as they stand now."""
    now = database_now(session)
    rows = {row.period: row for row in session.scalars(select(Limit).where(Limit.player_id == player_id))}
    return {
        period: standing_at(Standing(row.amount, row.next_amount, row.next_at), now) if row else Standing()
        for period, row in ((period, rows.get(period)) for period in PERIODS)
    }


def ask_for_limits(session: Session, row: Player, wanted: Mapping[str, int | None]) -> dict[str, Standing]:
    """Tighten a player's limits now, loosen them later; periods that are not in ``wanted`` stay.

    ``row`` is held by the caller (``lock_player``), so that two such requests follow each other.
    """
    now, standings = database_now(session), limits_of(session, row.id)
    for period, amount in wanted.items():
        standings[period] = after_asking(standings[period], amount, now)
    for period, standing in standings.items():
        session.merge(
            Limit(
                player_id=row.id,
                period=period,
                amount=standing.amount,
                next_amount=standing.next_amount,
                next_at=standing.next_at,
            )
        )
    session.flush()
    return standings


def assert_may_play(session: Session, row: Player) -> None:
    """See that a player may buy tickets and pay money in; ``row`` is held by the caller (``lock_player``).

    :raises Forbidden: code ``suspended``, or ``self_excluded`` with ``details.selfExclusionUntil``.
    """
    assert_not_suspended(row.suspended_at)
    until = row.self_excluded_until
    if until is not None and until > database_now(session):
        raise Forbidden(
            "you excluded yourself from playing; winnings can still be claimed and withdrawn",
            code="self_excluded",
            details={"selfExclusionUntil": format_timestamp(until)},
        )


def assert_within_limits(session: Session, row: Player, amount: int) -> None:
    """See that spending ``amount`` micro-USDC keeps a player within her limits; ``row`` is held by the caller.

    :raises Conflict: code ``limit_reached`` with ``details``: ``period``, ``limit`` and ``spent`` (micro-USDC strings).
    """
    for period, standing in limits_of(session, row.id).items():
        if standing.amount is None:
            continue
        spent = spent_in(session, row.id, period)
        if spent + amount > standing.amount:
            raise Conflict(
                f"this would go beyond the limit you set for the {period}",
                code="limit_reached",
                details={"period": period, "limit": str(standing.amount), "spent": str(spent)},
            )


def spent_in(session: Session, player_id: int, period: str) -> int:
    """What a player spent on tickets in the ``day``, ``week`` or ``month`` (UTC) that it is now, micro-USDC.

    A ticket whose price was given back was not paid for. Counted by tickets, whose purchase and refund are one row:
    the refund of a ticket of last month makes no room in this one.
    """
    start = func.date_trunc(period, func.clock_timestamp(), "UTC")
    bought = select(func.coalesce(func.sum(Ticket.price), 0)).where(
        Ticket.player_id == player_id, Ticket.purchased_at >= start, Ticket.status != "refunded"
    )
    return int(session.scalars(bought).one())
