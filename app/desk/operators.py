"""Looking after operators: reading, suspending, new API keys.

The one rule kept here: a new API key is in the answer once, and never in the audit log.
"""

from typing import Any

from sqlalchemy.orm import Session

from app.resources.admin_operators import admin_view, single_admin_view
from models.audit import record
from models.credentials import keys_in_force, rotate_api_key
from models.endpoints import forget_failures
from models.ledger import balance, operator_account
from models.operators import Operator, lock_operator, operator, operators_with_balances, set_active
from protocol.timestamps import format_timestamp
from tasks.bell import Bell, ring_after_commit

LONGEST_OVERLAP_SECONDS = 7 * 24 * 3600


def listed(session: Session, limit: int, offset: int) -> dict[str, Any]:
    """A page of operators, in the order in which they were registered."""
    rows = [admin_view(row, balance) for row, balance in operators_with_balances(session, limit, offset)]
    return {"operators": rows, "count": len(rows)}


def shown(session: Session, operator_id: str) -> dict[str, Any]:
    """One operator with its API keys.

    :raises NotFound: no such operator.
    """
    return _single(session, operator(session, operator_id))


def activate(session: Session, actor: str, operator_id: str, active: bool, reason: str) -> dict[str, Any]:
    """Suspend an operator or let it in again. What is so already stays so, without an entry in the audit log.

    :raises NotFound: no such operator.
    """
    if set_active(session, operator_id, active):
        record(session, actor, "operator.reinstate" if active else "operator.suspend", operator_id, reason)
    return shown(session, operator_id)


def rotate_key(
    session: Session, actor: str, operator_id: str, overlap_seconds: int, reason: str | None
) -> dict[str, Any]:
    """Give an operator a new API key; the ones it has end in ``overlap_seconds`` at the latest.

    :raises NotFound: no such operator.
    """
    row = lock_operator(session, operator_id)
    key, ends_at = rotate_api_key(session, row.id, overlap_seconds)
    # A receiver that refused our signatures has its new key now.
    forget_failures(session, row.id)
    ring_after_commit(session, Bell.DELIVERIES, [row.id])
    ends = format_timestamp(ends_at) if ends_at else None
    record(
        session,
        actor,
        "operator.rotate_key",
        row.id,
        reason,
        overlapSeconds=overlap_seconds,
        previousKeyExpiresAt=ends,
    )
    return {"apiKey": key, "previousKeyExpiresAt": ends}


def _single(session: Session, row: Operator) -> dict[str, Any]:
    return single_admin_view(row, balance(session, operator_account(row.id)), keys_in_force(session, row.id))
