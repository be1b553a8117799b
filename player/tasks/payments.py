"""Telling the payment provider of withdrawals.

The one rule kept here: the provider is told again and again, by the same order, until the payment has ended. It pays an
order once, so a worker that died before it wrote down the answer has cost nothing but time.
"""

import logging
from datetime import timedelta
from uuid import UUID

import dramatiq
from sqlalchemy import func, update

from player.models.payments import Payment, end_payment
from player.models.session import transaction
from player.payments.port import Order, payment_port
from player.tasks.broker import AFTER_ALL_ELSE, OUTSIDE, broker
from protocol.errors import LotteryError

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=60)
FIRST_RETRY, LAST_RETRY = timedelta(seconds=5), timedelta(hours=1)


@dramatiq.actor(broker=broker, queue_name=OUTSIDE, priority=AFTER_ALL_ELSE)
def tell_provider(payment_id: str) -> None:
    """Have one withdrawal paid out, if it is due."""
    order = _take(UUID(payment_id))
    if order is None:
        return  # Another worker has it, or it has ended.
    try:
        outcome = payment_port().begin_withdrawal(order)
    except LotteryError as refusal:
        log.warning("withdrawal not begun", extra={"payment": payment_id, "reason": refusal.code})
        outcome = None
    with transaction() as session:
        if outcome is not None:
            end_payment(
                session, order.id, completed=outcome.completed, amount=outcome.amount, reference=outcome.reference
            )
            return
        # The longer it has been waiting, the longer until it is asked for again.
        age = func.clock_timestamp() - Payment.created_at
        wait = func.least(func.greatest(age, FIRST_RETRY), LAST_RETRY)
        session.execute(
            update(Payment)
            .where(Payment.id == order.id, Payment.status == "pending")
            .values(due_at=func.clock_timestamp() + wait)
        )


def _take(payment_id: UUID) -> Order | None:
    with transaction() as session:
        row = session.execute(
            update(Payment)
            .where(
                Payment.id == payment_id,
                Payment.kind == "withdrawal",
                Payment.status == "pending",
                Payment.due_at <= func.clock_timestamp(),
            )
            .values(due_at=func.clock_timestamp() + LEASE)
            .returning(Payment.id, Payment.player_id, Payment.amount, Payment.destination)
        ).first()
    return None if row is None else Order(row.id, row.player_id, row.amount, row.destination)
