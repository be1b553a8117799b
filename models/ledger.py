"""The double-entry ledger: every micro-USDC that moves, and from where to where.

The one rule kept here: a posting is two or more entries that sum to zero, written once under a unique reference and
never altered. The database checks all three (triggers) and keeps each account's balance. Only ``external`` is
overdrawn, and an operator's own account by what it owes: expired prizes that it has spent.

Accounts: ``external`` (the world outside), ``operator:<id>`` (prefunded and released money), ``escrow:<round>``,
``pool`` (the jackpot), ``reserve`` (for sub-prizes), ``fee`` (ours).
"""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Mapped, Session, mapped_column

from models.base import Base, Created, Identifier, Micro

EXTERNAL = "external"
POOL = "pool"
RESERVE = "reserve"
FEE = "fee"


def operator_account(operator_id: str) -> str:
    """Account of an operator's own money."""
    return f"operator:{operator_id}"


def escrow_account(round_id: int) -> str:
    """Account of the escrow deposited for a round."""
    return f"escrow:{round_id}"


class Account(Base):
    """An account and what is on it, micro-USDC. Opened by its first entry."""

    __tablename__ = "ledger_accounts"
    __table_args__ = (CheckConstraint("balance >= 0 OR id = 'external' OR id LIKE 'operator:%'", name="not_overdrawn"),)

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    balance: Mapped[Micro] = mapped_column(server_default="0")


class Posting(Base):
    """One movement of money. ``reference`` is unique: what is posted again under it is not posted twice."""

    __tablename__ = "ledger_postings"
    __table_args__ = (Index("ix_ledger_postings_round_id", "round_id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    reference: Mapped[str] = mapped_column(unique=True)
    kind: Mapped[str]
    round_id: Mapped[int | None] = mapped_column(ForeignKey("rounds.id"))
    created_at: Mapped[Created]


class Entry(Base):
    """What one posting adds to one account, micro-USDC; negative when it takes."""

    __tablename__ = "ledger_entries"
    __table_args__ = (
        CheckConstraint("amount <> 0", name="moves_something"),
        Index("ix_ledger_entries_account_id_posting_id", "account_id", "posting_id"),
    )

    posting_id: Mapped[int] = mapped_column(ForeignKey("ledger_postings.id"), primary_key=True)
    account_id: Mapped[Identifier] = mapped_column(primary_key=True)
    amount: Mapped[Micro]


def post(session: Session, reference: str, kind: str, amounts: Mapping[str, int], round_id: int | None = None) -> bool:
    """Write one posting; False when the reference was posted before (nothing is written then).

    Amounts of zero are left out. Accounts are touched in the byte order of their ids, always, so that two
    postings never wait for each other crosswise.

    :raises sqlalchemy.exc.IntegrityError: an account would be overdrawn; at commit, when the sum is not zero.
    """
    moved = {account: amount for account, amount in sorted(amounts.items()) if amount}
    if not moved:
        return False
    new = insert(Posting).values(reference=reference, kind=kind, round_id=round_id)
    posting_id = session.scalars(new.on_conflict_do_nothing().returning(Posting.id)).first()
    if posting_id is None:
        return False
    session.execute(
        insert(Entry),
        [{"posting_id": posting_id, "account_id": account, "amount": amount} for account, amount in moved.items()],
    )
    return True


def amounts_of(session: Session, reference: str) -> dict[str, int]:
    """What the posting with this reference moved, by account; empty when there is none."""
    rows = session.execute(
        select(Entry.account_id, Entry.amount)
        .join(Posting, Posting.id == Entry.posting_id)
        .where(Posting.reference == reference)
    )
    return {account: amount for account, amount in rows}  # noqa: C416 - rows are not pairs to a type checker


def balance(session: Session, account: str) -> int:
    """What is on an account, micro-USDC."""
    return session.scalars(select(Account.balance).where(Account.id == account)).first() or 0


def last_moved(session: Session, account: str) -> datetime | None:
    """When money last came to an account or left it (UTC); None for an account that nothing has touched."""
    last = select(func.max(Entry.posting_id)).where(Entry.account_id == account).scalar_subquery()
    return session.scalars(select(Posting.created_at).where(Posting.id == last)).first()


def balance_for_update(session: Session, account: str) -> int:
    """What is on an account, which nobody else can then change until this transaction ends."""
    return session.scalars(select(Account.balance).where(Account.id == account).with_for_update()).first() or 0
