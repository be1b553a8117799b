"""Failing: a round that ends before its draw gives everything back.

The one rule kept here: a failed round's escrow returns to where it came from, in the transaction that fails the
round; pool, reserve and cumulative tickets stay as they were.
"""

from datetime import datetime

from sqlalchemy.orm import Session

from models.ledger import escrow_account, operator_account, post
from models.participation import participations
from models.rounds import Round
from protocol.lifecycle import Trigger
from tasks.steps import Announcement, carry_out


def refund(session: Session, row: Round) -> None:
    """Return whatever escrow the round took."""
    back = {
        operator_account(part.operator_id): part.escrow_usdc
        for part, _ in participations(session, row.id)
        if part.escrow_usdc
    }
    total = sum(back.values())
    post(session, f"refund:{row.id}", "refund", {escrow_account(row.id): -total, **back}, row.id)


def abort(session: Session, row: Round, now: datetime) -> None:
    """Any state before DRAWN → FAILED, for the reason the admin gave."""
    assert row.abort_reason is not None  # ``decide`` asks for it
    refund(session, row)
    news = Announcement(rounds={"round.failed": {"reason": row.abort_reason}})
    carry_out(session, row, Trigger.ABORTED, news, now, reason=row.abort_reason)
