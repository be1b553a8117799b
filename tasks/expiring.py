"""Expiring: a round's unclaimed prizes leave their operators' balances for the reserve.

The one rule kept here: one round is one posting in one transaction, under the locks that reports of its prizes take.
Each prize is either claimed in time and stays the operator's, or is taken back here.
"""

import logging

from sqlalchemy import func
from sqlalchemy.orm import Session

from models.expiries import take_due, unclaimed
from models.ledger import RESERVE, balance, operator_account, post

log = logging.getLogger(__name__)

KIND = "expiry"


def expire_next(session: Session) -> dict[str, object] | None:
    """Expire the prizes of one round that is due, and say of which and how much; None when no round is due."""
    expiry = take_due(session)
    if expiry is None:
        return None
    found = unclaimed(session, expiry.round_id)
    amount = sum(one.amount for one in found)
    taken = {operator_account(one.operator_id): -one.amount for one in found}
    post(session, f"expiry:{expiry.round_id}", KIND, {**taken, RESERVE: amount}, expiry.round_id)
    expiry.expired_at = func.clock_timestamp()
    expiry.prizes = sum(one.prizes for one in found)
    expiry.amount = amount
    session.flush()
    for account in taken:
        if (left := balance(session, account)) < 0:
            # It spent the prizes and did not pay them to players. The next money that comes in fills the gap.
            log.warning("an operator owes prizes", extra={"account": account, "owed_usdc": -left})
    return {"round": expiry.round_id, "prizes": expiry.prizes, "amount_usdc": amount}
