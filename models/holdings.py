"""Holdings: what an operator has with us, free on its own account and bound in the escrow of its rounds.

The one rule kept here: both are read by one statement, so that money which moves from the one to the other meanwhile is
in exactly one of them.
"""

from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from models.ledger import Account, operator_account
from models.participation import Participation
from models.rounds import Round
from protocol.lifecycle import State

ESCROW_HELD = (State.SEALED, State.ESCROWED, State.DRAWN)
"""States of a round that holds what its operators deposited: it is released in SETTLED, and goes back in FAILED."""


class Holdings(NamedTuple):
    """``available``: on the operator's account, negative when it owes. ``in_escrow``: bound in rounds. micro-USDC."""

    available: int
    in_escrow: int


def holdings(session: Session, operator_id: str) -> Holdings:
    """What the operator has at this moment."""
    available = select(Account.balance).where(Account.id == operator_account(operator_id)).scalar_subquery()
    in_escrow = (
        select(func.sum(Participation.escrow_usdc))
        .join(Round, Round.id == Participation.round_id)
        .where(Participation.operator_id == operator_id, Round.state.in_(ESCROW_HELD))
        .scalar_subquery()
    )
    found = session.execute(select(func.coalesce(available, 0), func.coalesce(in_escrow, 0))).one()
    return Holdings(int(found[0]), int(found[1]))
