"""Payments: money on its way between a player's bank and a player's balance.

The one rule kept here: a payment ends once, completed or failed, and only then (a deposit) or only if it failed (a
withdrawal) is the balance touched again.
"""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID, uuid4

from sqlalchemy import CheckConstraint, ForeignKey, Index, func, select, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Mapped, Session, mapped_column

from player.models.base import Base, Created, Due, Micro
from player.models.ledger import WITHDRAWALS, WORLD, balance, player_account, transfer
from player.models.limits import assert_may_play
from player.models.players import assert_not_suspended, lock_player
from player.models.session import database_now
from player.models.transactions import Transaction
from player.settings import settings
from protocol.errors import Conflict, Forbidden, NotFound

KINDS = ("deposit", "withdrawal")
STATUSES = ("pending", "completed", "failed")


class Payment(Due, Base):
    """A deposit or a withdrawal at the payment provider. ``due_at``: when the provider is to be told of it."""

    __tablename__ = "payments"
    __table_args__ = (
        CheckConstraint("kind IN ('deposit', 'withdrawal')", name="kind"),
        CheckConstraint("status IN ('pending', 'completed', 'failed')", name="status"),
        CheckConstraint("amount > 0", name="moves_something"),
        CheckConstraint("(status = 'pending') = (ended_at IS NULL)", name="ended_or_pending"),
        Index("ix_payments_due", "due_at", postgresql_where=text("due_at IS NOT NULL")),
        Index("ix_payments_player_id_created_at", "player_id", "created_at"),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    player_id: Mapped[int] = mapped_column(ForeignKey("players.id"))
    transaction_id: Mapped[int] = mapped_column(ForeignKey("transactions.id"), unique=True)
    kind: Mapped[str]
    amount: Mapped[Micro]
    status: Mapped[str] = mapped_column(server_default="pending")
    destination: Mapped[str | None]
    provider_reference: Mapped[str | None] = mapped_column(unique=True)
    created_at: Mapped[Created]
    ended_at: Mapped[datetime | None]


def ask_deposit(session: Session, player_id: int, amount: int) -> Payment:
    """Write down that a player wants to pay in ``amount`` micro-USDC. Nothing moves until it has come in.

    :raises Forbidden: suspended or self-excluded.
    """
    assert_may_play(session, lock_player(session, player_id))
    return _payment(session, "deposit", player_id, amount)


def ask_withdrawal(session: Session, player_id: int, amount: int, destination: str) -> Payment:
    """Take ``amount`` micro-USDC off a player's balance, to be paid out to ``destination``.

    Open to whoever excluded herself: what she holds is hers.

    :raises Forbidden: code ``suspended``; ``kyc_required``: nothing is known of her, and in all it would be too much
        for that.
    :raises Conflict: code ``insufficient_funds``.
    """
    row = lock_player(session, player_id)
    assert_not_suspended(row.suspended_at)
    if row.kyc_level == "none":
        _assert_known_enough(session, player_id, amount)
    held = balance(session, player_account(player_id))
    if held < amount:
        raise Conflict(
            "the balance does not suffice for this", code="insufficient_funds", details={"balance": str(held)}
        )
    payment = _payment(session, "withdrawal", player_id, amount, destination)
    transfer(session, f"withdrawal:{payment.id}", player_account(player_id), WITHDRAWALS, amount)
    return payment


def _assert_known_enough(session: Session, player_id: int, amount: int) -> None:
    most = settings().withdrawal_kyc_usdc
    asked = select(func.coalesce(func.sum(Payment.amount), 0)).where(
        Payment.player_id == player_id, Payment.kind == "withdrawal", Payment.status != "failed"
    )
    withdrawn = int(session.scalars(asked).one())
    if withdrawn + amount > most:
        raise Forbidden(
            "withdrawing this much needs a verified identity",
            code="kyc_required",
            details={"limit": str(most), "withdrawn": str(withdrawn)},
        )


def _payment(session: Session, kind: str, player_id: int, amount: int, destination: str | None = None) -> Payment:
    number, leaves = uuid4(), kind == "withdrawal"
    line = Transaction(
        player_id=player_id,
        type=kind,
        amount=-amount if leaves else amount,
        status="pending",
        reference=str(number),
    )
    session.add(line)
    session.flush()
    payment = Payment(
        id=number,
        player_id=player_id,
        transaction_id=line.id,
        kind=kind,
        amount=amount,
        status="pending",
        destination=destination,
        # A withdrawal is work: the provider has to be told. A deposit waits for the player and the provider.
        due_at=database_now(session) if leaves else None,
    )
    session.add(payment)
    session.flush()
    return payment


def end_payment(session: Session, payment_id: UUID, *, completed: bool, amount: int, reference: str | None) -> Payment:
    """Write down how a payment ended, and move its money. Told again, the same outcome changes nothing.

    A deposit that came in is the player's, whatever has become of her since.

    :raises NotFound: no such payment.
    :raises Conflict: code ``amount_differs``; ``payment_ended``: it ended before, the other way; ``reference_used``:
        another payment has this ``reference``.
    """
    row = session.scalars(select(Payment).where(Payment.id == payment_id).with_for_update()).first()
    if row is None:
        raise NotFound("no such payment")
    if amount != row.amount:
        raise Conflict(f"this payment is of {row.amount}, not {amount}", code="amount_differs")
    status = "completed" if completed else "failed"
    if row.status != "pending":
        if row.status != status:
            raise Conflict(f"this payment is {row.status} already", code="payment_ended")
        return row
    own = player_account(row.player_id)
    if row.kind == "deposit" and completed:
        transfer(session, f"deposit:{row.id}", WORLD, own, row.amount)
    if row.kind == "withdrawal":
        transfer(session, f"withdrawal-end:{row.id}", WITHDRAWALS, WORLD if completed else own, row.amount)
    session.get_one(Transaction, row.transaction_id).status = status
    row.status, row.ended_at, row.due_at = status, database_now(session), None
    row.provider_reference = reference or None
    try:
        session.flush()
    except IntegrityError as refused:
        if "uq_payments_provider_reference" not in str(refused.orig):
            raise
        raise Conflict("another payment has this reference of the provider's", code="reference_used") from None
    return row


def payments_of(
    session: Session, player_id: int, kind: str, *, status: str | None = None, limit: int = 50, offset: int = 0
) -> Sequence[Payment]:
    """A player's deposits or withdrawals, newest first; of one of STATUSES if ``status`` is given."""
    wanted = select(Payment).where(Payment.player_id == player_id, Payment.kind == kind)
    if status is not None:
        wanted = wanted.where(Payment.status == status)
    newest = wanted.order_by(Payment.created_at.desc(), Payment.id)
    return session.scalars(newest.limit(limit).offset(offset)).all()


def payment_of(session: Session, player_id: int, kind: str, payment_id: UUID) -> Payment:
    """One of a player's own deposits or withdrawals.

    :raises NotFound: she has no such payment.
    """
    row = session.get(Payment, payment_id)
    if row is None or (row.player_id, row.kind) != (player_id, kind):
        raise NotFound(f"no such {kind}")
    return row


def pending_withdrawals(session: Session, player_id: int) -> int:
    """What was taken off a player's balance and is not paid out yet, micro-USDC."""
    asked = select(func.coalesce(func.sum(Payment.amount), 0)).where(
        Payment.player_id == player_id, Payment.kind == "withdrawal", Payment.status == "pending"
    )
    return int(session.scalars(asked).one())
