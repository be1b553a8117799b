"""Deposits: money that an operator sent, recorded once by its reference.

The one rule kept here: whoever records a deposit wakes the rounds that wait for it, in the same transaction.
"""

from dataclasses import dataclass

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from models.ledger import EXTERNAL, amounts_of, balance, operator_account, post
from models.participation import Participation
from models.rounds import Round
from protocol.errors import Conflict
from protocol.lifecycle import State


@dataclass(frozen=True)
class Deposit:
    """What recording came to. ``balance``: micro-USDC, afterwards; ``new``: False when it was on record before."""

    new: bool
    balance: int
    woken_rounds: tuple[int, ...]


def deposit(session: Session, operator_id: str, amount: int, reference: str) -> Deposit:
    """Credit ``amount`` micro-USDC to the operator, once for each ``reference``.

    :raises Conflict: the reference is on record with another amount.
    """
    account = operator_account(operator_id)
    # Rounds before accounts, as everywhere, so that a deposit and a round collecting escrow never wait crosswise.
    waiting = _wake_rounds_awaiting_escrow(session, operator_id)
    name = f"deposit:{operator_id}:{reference}"
    new = post(session, name, "deposit", {EXTERNAL: -amount, account: amount})
    if not new and amounts_of(session, name)[account] != amount:
        raise Conflict("this reference is on record with another amount", code="deposit_conflict")
    return Deposit(new, balance(session, account), waiting)


def _wake_rounds_awaiting_escrow(session: Session, operator_id: str) -> tuple[int, ...]:
    now = func.clock_timestamp()
    unpaid = select(Participation.round_id).where(
        Participation.operator_id == operator_id,
        Participation.escrowed_at.is_(None),
        Participation.excluded_at.is_(None),
    )
    woken = session.scalars(
        update(Round)
        .where(Round.state == State.SEALED, Round.id.in_(unpaid))
        .values(due_at=now, ring_at=now)
        .returning(Round.id)
        .execution_options(synchronize_session=False)
    )
    return tuple(woken)
