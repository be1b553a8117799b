"""Transactions: a player's account statement, in the words of the published interface (section 2.12).

The one rule kept here: a transaction and the transfer behind it are written together, so that the sum of a player's
transactions that did not fail is the player's balance. A deposit on its way has moved nothing yet and does not count;
a withdrawal on its way has left the balance already and does.
"""

from collections.abc import Sequence

from sqlalchemy import CheckConstraint, ForeignKey, Index, select
from sqlalchemy.orm import Mapped, Session, mapped_column

from player.models.base import Base, Created, Micro, Number
from player.models.ledger import player_account, transfer
from protocol.errors import NotFound

TYPES = ("deposit", "purchase", "withdrawal", "prize", "refund", "credit")
"""``refund`` returns the price of a ticket whose round failed; ``credit`` is given by the operator's staff."""
STATUSES = ("pending", "completed", "failed")


class Transaction(Base):
    """One line of a statement. ``amount`` is signed: below zero when money leaves the player's balance."""

    __tablename__ = "transactions"
    __table_args__ = (
        CheckConstraint("type IN ('deposit', 'purchase', 'withdrawal', 'prize', 'refund', 'credit')", name="type"),
        CheckConstraint("status IN ('pending', 'completed', 'failed')", name="status"),
        Index("ix_transactions_player_id_id", "player_id", "id"),
        Index("ix_transactions_player_id_type_id", "player_id", "type", "id"),
    )

    id: Mapped[Number]
    player_id: Mapped[int] = mapped_column(ForeignKey("players.id"))
    type: Mapped[str]
    amount: Mapped[Micro]
    status: Mapped[str] = mapped_column(server_default="completed")
    reference: Mapped[str | None]
    created_at: Mapped[Created]


def move(
    session: Session, player_id: int, type_: str, amount: int, other: str, *, once: str, reference: str | None = None
) -> Transaction | None:
    """Move money between a player and the account ``other``, and write it into her statement.

    ``amount`` is signed micro-USDC, above zero when it goes to the player. ``once`` names the movement: None, and
    nothing moves, when it was made before.

    :raises sqlalchemy.exc.IntegrityError: the account it comes from would be overdrawn.
    """
    own = player_account(player_id)
    source, target = (other, own) if amount > 0 else (own, other)
    if not transfer(session, once, source, target, abs(amount)):
        return None
    row = Transaction(player_id=player_id, type=type_, amount=amount, status="completed", reference=reference)
    session.add(row)
    session.flush()
    return row


def transactions_of(
    session: Session, player_id: int, *, type_: str | None = None, limit: int = 50, offset: int = 0
) -> Sequence[Transaction]:
    """A player's statement, newest first; of one of TYPES if ``type_`` is given."""
    wanted = select(Transaction).where(Transaction.player_id == player_id)
    if type_ is not None:
        wanted = wanted.where(Transaction.type == type_)
    return session.scalars(wanted.order_by(Transaction.id.desc()).limit(limit).offset(offset)).all()


def transaction_of(session: Session, player_id: int, number: int) -> Transaction:
    """One line of a player's own statement.

    :raises NotFound: she has no such transaction.
    """
    row = session.scalars(
        select(Transaction).where(Transaction.id == number, Transaction.player_id == player_id)
    ).first()
    if row is None:
        raise NotFound("no such transaction")
    return row
