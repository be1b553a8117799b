"""The ledger: every micro-USDC that moves, from which account and to which.

The one rule kept here: a transfer takes from one account what it gives to another, so the books balance by
construction; it is written once under a unique reference and never altered. The database checks it, keeps each
account's balance, and lets only ``world`` and ``house`` go below zero.

Accounts: ``world`` (money that came from or went to players' banks), ``player:<id>``, ``withdrawals`` (asked for and
not paid out yet), ``sales:<round>`` (tickets of a round that is not settled), ``house`` (the operator's own).
"""

from sqlalchemy import CheckConstraint, Index, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Mapped, Session, mapped_column

from player.models.base import BYTE_ORDER, Base, Created, Micro, Number

WORLD = "world"
WITHDRAWALS = "withdrawals"
HOUSE = "house"


def player_account(player_id: int) -> str:
    """Account of a player's own money."""
    return f"player:{player_id}"


def sales_account(round_id: int) -> str:
    """Account of what the tickets of a round were sold for, until the round is settled or has failed."""
    return f"sales:{round_id}"


class Account(Base):
    """An account and what is on it, micro-USDC. Opened by its first transfer."""

    __tablename__ = "accounts"
    __table_args__ = (CheckConstraint("balance >= 0 OR id IN ('world', 'house')", name="not_overdrawn"),)

    id: Mapped[str] = mapped_column(BYTE_ORDER, primary_key=True)
    balance: Mapped[Micro] = mapped_column(server_default="0")


class Transfer(Base):
    """One movement of money, micro-USDC. ``reference`` is unique: what was moved under it is not moved again."""

    __tablename__ = "transfers"
    __table_args__ = (
        CheckConstraint("amount > 0", name="moves_something"),
        CheckConstraint("source <> target", name="two_accounts"),
        Index("ix_transfers_source_id", "source", "id"),
        Index("ix_transfers_target_id", "target", "id"),
    )

    id: Mapped[Number]
    reference: Mapped[str] = mapped_column(unique=True)
    source: Mapped[str] = mapped_column(BYTE_ORDER)
    target: Mapped[str] = mapped_column(BYTE_ORDER)
    amount: Mapped[Micro]
    created_at: Mapped[Created] = mapped_column(index=True)


def transfer(session: Session, reference: str, source: str, target: str, amount: int) -> bool:
    """Move ``amount`` micro-USDC (at least 1); False when the reference was used before (nothing moves then).

    :raises sqlalchemy.exc.IntegrityError: the source would be overdrawn.
    """
    new = insert(Transfer).values(reference=reference, source=source, target=target, amount=amount)
    return session.scalars(new.on_conflict_do_nothing().returning(Transfer.id)).first() is not None


def balance(session: Session, account: str) -> int:
    """What is on an account, micro-USDC."""
    return session.scalars(select(Account.balance).where(Account.id == account)).first() or 0
