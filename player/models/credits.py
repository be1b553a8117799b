"""Credits: what the operator's staff gives a player out of the house's own money.

The one rule kept here: one reference is one credit, however often it is asked for; another amount under it is refused.
"""

from sqlalchemy import select
from sqlalchemy.orm import Session

from player.models.ledger import HOUSE, Transfer
from player.models.players import lock_player
from player.models.transactions import move
from protocol.errors import Conflict


def credit_player(session: Session, player_id: int, amount: int, reference: str) -> bool:
    """Give a player ``amount`` micro-USDC (at least 1) from ``house``; False when that had been done before.

    :raises NotFound: no such player.
    :raises Conflict: the reference was used for another amount.
    """
    lock_player(session, player_id)
    name = f"credit:{player_id}:{reference}"
    if move(session, player_id, "credit", amount, HOUSE, once=name, reference=reference) is not None:
        return True
    if session.scalars(select(Transfer.amount).where(Transfer.reference == name)).one() != amount:
        raise Conflict("another amount was credited under this reference", code="reference_used")
    return False
