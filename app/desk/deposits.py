"""Recording money that an operator sent.

The one rule kept here: the audit log has one entry a deposit, however often the deposit is told.
"""

from typing import Any

from sqlalchemy.exc import DataError
from sqlalchemy.orm import Session

from models.audit import record
from models.deposits import deposit
from models.operators import operator
from protocol.errors import Invalid
from tasks.bell import Bell, ring_after_commit


def record_deposit(session: Session, actor: str, operator_id: str, amount: int, reference: str) -> dict[str, Any]:
    """Credit ``amount`` micro-USDC, once for each reference. The same again changes nothing and succeeds.

    :raises NotFound: no such operator.
    :raises Conflict: the reference is on record with another amount.
    :raises Invalid: more than the books can hold.
    """
    row = operator(session, operator_id)
    try:
        made = deposit(session, row.id, amount, reference)
    except DataError:
        # The amount is one the form takes; the sum with what is on the books already no bigint holds.
        details = {"amountUsdc": ["More than the ledger can hold."]}
        raise Invalid("the deposit cannot be booked", details=details) from None
    if made.new:
        record(session, actor, "operator.deposit", row.id, reference=reference, amountUsdc=str(amount))
        ring_after_commit(session, Bell.ROUND, made.woken_rounds)
    return {
        "operatorId": row.id,
        "amountUsdc": str(amount),
        "balanceUsdc": str(made.balance),
        "reference": reference,
    }
