"""Reports: what a round brought the house, and what moved on each day.

The one rule kept here: money is counted where it moved, in the ledger's transfers, by UTC day; only what shares the
way from the house to a player (prizes, credits) is told apart by the players' statements.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from sqlalchemy import ColumnElement, Date, and_, case, cast, func, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from player.models.desk.rounds import Counted, prizes_of, tickets_of
from player.models.ledger import WITHDRAWALS, WORLD, Transfer
from player.models.prizes import Prize
from player.models.rounds import Round
from player.models.transactions import Transaction
from protocol.errors import Invalid, NotFound

LONGEST_DAYS = 366
_PLAYERS, _SALES = "player:", "sales:"


@dataclass(frozen=True)
class Day:
    """What moved on a UTC day, micro-USDC. Failed withdrawals went back to the players."""

    day: date
    deposits: int = 0
    withdrawals_asked: int = 0
    withdrawals_paid: int = 0
    withdrawals_failed: int = 0
    sales: int = 0
    refunds: int = 0
    prizes: int = 0
    credits: int = 0


@dataclass(frozen=True)
class RoundReport:
    """What a round brought, micro-USDC. ``house``: sales less refunds, less prizes claimed and still to be claimed;
    before the shares that the coordinator takes and pays.
    """

    round_id: int
    stage: str
    tickets: int
    sales: int
    refunds: int
    prizes: list[Counted]
    reported: int
    house: int


def round_report(session: Session, round_id: int) -> RoundReport:
    """What one round brought.

    :raises NotFound: we know no such round.
    """
    found = session.get(Round, round_id)
    if found is None:
        raise NotFound("no such round")
    tickets, prizes = tickets_of(session, round_id), prizes_of(session, round_id)
    sales = sum(each.amount for each in tickets)
    refunds = sum(each.amount for each in tickets if each.status == "refunded")
    owed = sum(each.amount for each in prizes if each.status != "expired")
    told = select(func.count()).where(Prize.round_id == round_id, Prize.reported_at.is_not(None))
    return RoundReport(
        round_id=round_id,
        stage=found.stage,
        tickets=sum(each.count for each in tickets),
        sales=sales,
        refunds=refunds,
        prizes=prizes,
        reported=session.scalars(told).one(),
        house=sales - refunds - owed,
    )


def daily(session: Session, first: date, last: date) -> list[Day]:
    """What moved on each day from ``first`` to ``last``, both included; days on which nothing did are there too.

    :raises Invalid: the days are in the wrong order, or more than 366.
    """
    if not 0 <= (last - first).days < LONGEST_DAYS:
        raise Invalid(f"from must be before or at to, and not more than {LONGEST_DAYS} days apart")
    sums: dict[date, dict[str, int]] = {day: {} for day in _days(first, last)}
    for day, kind, amount in [*_transferred(session, first, last), *_given(session, first, last)]:
        sums[day][kind] = int(amount)
    return [Day(day, **found) for day, found in sums.items()]


def _days(first: date, last: date) -> Iterator[date]:
    for number in range((last - first).days + 1):
        yield first + timedelta(days=number)


def _transferred(session: Session, first: date, last: date) -> list[tuple[date, str, int]]:
    source, target = Transfer.source, Transfer.target
    kind = case(
        (and_(source == WORLD, target.startswith(_PLAYERS)), "deposits"),
        (and_(source.startswith(_PLAYERS), target == WITHDRAWALS), "withdrawals_asked"),
        (and_(source == WITHDRAWALS, target == WORLD), "withdrawals_paid"),
        (and_(source == WITHDRAWALS, target.startswith(_PLAYERS)), "withdrawals_failed"),
        (and_(source.startswith(_PLAYERS), target.startswith(_SALES)), "sales"),
        (and_(source.startswith(_SALES), target.startswith(_PLAYERS)), "refunds"),
    )
    day = cast(Transfer.created_at, Date)
    wanted = select(day, kind, func.sum(Transfer.amount)).where(
        _between(Transfer.created_at, first, last), kind.is_not(None)
    )
    return [tuple(row) for row in session.execute(wanted.group_by(day, kind))]


def _given(session: Session, first: date, last: date) -> list[tuple[date, str, int]]:
    kind = case((Transaction.type == "prize", "prizes"), (Transaction.type == "credit", "credits"))
    day = cast(Transaction.created_at, Date)
    wanted = select(day, kind, func.sum(Transaction.amount)).where(
        _between(Transaction.created_at, first, last),
        Transaction.type.in_(("prize", "credit")),
        Transaction.status == "completed",
    )
    return [tuple(row) for row in session.execute(wanted.group_by(day, kind))]


def _between(moment: InstrumentedAttribute[datetime], first: date, last: date) -> ColumnElement[bool]:
    # To the last microsecond, which is the database's finest: there is no day after the last one of the calendar.
    return and_(moment >= datetime.combine(first, time.min, UTC), moment <= datetime.combine(last, time.max, UTC))
