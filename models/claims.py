"""Claims: which prizes an operator has paid to its players, as it reports.

The one rule kept here: a prize is claimed once and stays so. Reports of one operator on one round wait for each other
(its participation's lock), so that no prize is counted twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ARRAY, SmallInteger, String, TableValuedAlias, cast, column, exists, func, select, update
from sqlalchemy.orm import Session

from models.draws import WinningTicket
from models.operators import Operator, lock_operators
from models.session import database_now

Payout = tuple[str, int]
"""A ticket and the tier it won in (0: the jackpot)."""


@dataclass(frozen=True)
class Claimed:
    """What a report changed: prizes now claimed, ``late`` of them after their deadline, and those claimed before."""

    accepted: int
    already_claimed: int
    late: int


def not_won(session: Session, round_id: int, operator_id: str, payouts: Sequence[Payout]) -> list[Payout]:
    """Those of the payouts that no winning ticket of the operator stands for, in the order given."""
    paid = _table_of(payouts)
    won = exists().where(
        WinningTicket.round_id == round_id,
        WinningTicket.operator_id == operator_id,
        WinningTicket.ticket_id == paid.c.ticket_id,
        WinningTicket.tier == paid.c.tier,
    )
    missing = {(ticket_id, tier) for ticket_id, tier in session.execute(select(paid).where(~won))}
    return [payout for payout in payouts if payout in missing]


def claim_prizes(session: Session, round_id: int, operator_id: str, payouts: Sequence[Payout]) -> Claimed:
    """Mark prizes as paid to the players and count them for the operator's reputation, on time or late.

    The caller holds the participation's lock, has checked ``not_won`` and names no prize twice.
    """
    paid, now = _table_of(payouts), database_now(session)
    deadlines = session.scalars(
        update(WinningTicket)
        .where(
            WinningTicket.round_id == round_id,
            WinningTicket.operator_id == operator_id,
            WinningTicket.ticket_id == paid.c.ticket_id,
            WinningTicket.tier == paid.c.tier,
            WinningTicket.claimed_at.is_(None),
        )
        .values(claimed_at=now)
        .returning(WinningTicket.claim_deadline)
        .execution_options(synchronize_session=False)
    ).all()
    late = sum(deadline is not None and deadline < now for deadline in deadlines)
    if deadlines:
        lock_operators(session, [operator_id])
        session.execute(
            update(Operator)
            .where(Operator.id == operator_id)
            .values(
                payouts_on_time=Operator.payouts_on_time + len(deadlines) - late,
                payouts_late=Operator.payouts_late + late,
            )
            .execution_options(synchronize_session=False)
        )
    return Claimed(accepted=len(deadlines), already_claimed=len(payouts) - len(deadlines), late=late)


def _table_of(payouts: Sequence[Payout]) -> TableValuedAlias:
    # Two arrays and not 10,000 rows of VALUES: one short statement, whatever the report's size.
    tickets = cast([ticket_id for ticket_id, _ in payouts], ARRAY(String))
    tiers = cast([tier for _, tier in payouts], ARRAY(SmallInteger))
    return (
        func.unnest(tickets, tiers)
        .table_valued(column("ticket_id", String), column("tier", SmallInteger), name="paid")
        .render_derived()
    )
