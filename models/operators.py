"""Operators: the licensed companies, their counters and their webhook address.

The one rule kept here: counters only grow, in the transaction of the round's own change, with operators locked in the
order of their ids so that two rounds never wait for each other.
"""

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from sqlalchemy import TIMESTAMP, Boolean, Index, func, select, text, update
from sqlalchemy.orm import InstrumentedAttribute, Mapped, Session, mapped_column

from models.base import Base, Created, Due, Identifier, Micro
from models.ledger import Account
from models.session import database_now
from models.settings import settings
from protocol.errors import NotFound
from protocol.identifiers import is_identifier
from protocol.reputation import score


class Operator(Due, Base):
    """An approved operator. ``due_at`` is when its next heartbeat will count as missed."""

    __tablename__ = "operators"
    __table_args__ = (Index("ix_operators_ring", "ring_at", postgresql_where=text("due_at IS NOT NULL")),)

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    name: Mapped[str]
    jurisdiction: Mapped[str]
    address: Mapped[str]
    active: Mapped[bool] = mapped_column(Boolean, server_default="true")
    registered_at: Mapped[Created]
    webhook_url: Mapped[str | None]
    last_heartbeat: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    heartbeats_missed: Mapped[int] = mapped_column(server_default="0")
    rounds_participated: Mapped[int] = mapped_column(server_default="0")
    rounds_escrowed: Mapped[int] = mapped_column(server_default="0")
    rounds_excluded: Mapped[int] = mapped_column(server_default="0")
    rounds_won: Mapped[int] = mapped_column(server_default="0")
    nonces_withheld: Mapped[int] = mapped_column(server_default="0")
    payouts_on_time: Mapped[int] = mapped_column(server_default="0")
    payouts_late: Mapped[int] = mapped_column(server_default="0")
    on_chain_id: Mapped[str | None]
    on_chain_bond_amount: Mapped[Micro | None]
    on_chain_bond_status: Mapped[str | None]
    on_chain_last_attestation: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))

    @property
    def reputation_score(self) -> int:
        """0 to 100 (docs/protocol.md, "Reputation")."""
        return score(
            sealed=self.rounds_participated,
            escrowed=self.rounds_escrowed,
            excluded=self.rounds_excluded,
            payouts_on_time=self.payouts_on_time,
            payouts_late=self.payouts_late,
            heartbeats_missed=self.heartbeats_missed,
            nonces_withheld=self.nonces_withheld,
        )


def operator(session: Session, operator_id: str) -> Operator:
    """One operator.

    :raises NotFound: no such operator.
    """
    row = session.get(Operator, operator_id) if is_identifier(operator_id) else None
    if row is None:
        raise NotFound("no such operator")
    return row


def lock_operator(session: Session, operator_id: str) -> Operator:
    """One operator, which nobody else changes until this transaction ends.

    :raises NotFound: no such operator.
    """
    row = operator(session, operator_id)
    session.refresh(row, with_for_update={"key_share": True})
    return row


def set_active(session: Session, operator_id: str, active: bool) -> bool:
    """Suspend an operator or let it in again; False when it was so before.

    A suspended operator cannot send heartbeats, so none is awaited: its silence must not count against it.

    :raises NotFound: no such operator.
    """
    row = lock_operator(session, operator_id)
    if row.active == active:
        return False
    row.active = active
    if not active:
        row.due_at = None
    return True


def operators_with_balances(session: Session, limit: int, offset: int) -> list[tuple[Operator, int]]:
    """A page of operators, in the order in which they were registered, each with its balance (micro-USDC)."""
    account = Account.id == func.concat("operator:", Operator.id)
    page = select(Operator, func.coalesce(Account.balance, 0)).outerjoin(Account, account)
    ordered = page.order_by(Operator.registered_at, Operator.id).limit(limit).offset(offset)
    return [(row, int(balance)) for row, balance in session.execute(ordered)]


def operators(session: Session) -> list[Operator]:
    """Every operator, in the order in which they were registered."""
    return list(session.scalars(select(Operator).order_by(Operator.registered_at, Operator.id)))


def active_operator_ids(session: Session) -> list[str]:
    """Ids of the operators that may take part, in byte order."""
    return list(session.scalars(select(Operator.id).where(Operator.active).order_by(Operator.id)))


def unknown_or_inactive(session: Session, operator_ids: Iterable[str]) -> list[str]:
    """Those of the ids that name no active operator, in byte order."""
    return sorted(set(operator_ids) - set(active_operator_ids(session)))


def lock_operators(session: Session, operator_ids: Collection[str]) -> None:
    """Lock the operators' rows in the order of their ids, before any of their counters or balances is touched."""
    wanted = select(Operator.id).where(Operator.id.in_(operator_ids)).order_by(Operator.id)
    session.execute(wanted.with_for_update(key_share=True)).all()


def count_up(session: Session, counter: InstrumentedAttribute[int], operator_ids: Collection[str]) -> None:
    """Add one to a counter of each operator."""
    if operator_ids:
        lock_operators(session, operator_ids)
        session.execute(
            update(Operator)
            .where(Operator.id.in_(operator_ids))
            .values({counter: counter + 1})
            .execution_options(synchronize_session=False)
        )


def record_heartbeat(session: Session, operator_id: str) -> datetime:
    """Note that the operator is alive, and start waiting for its next heartbeat. Returns the moment (UTC)."""
    now = database_now(session)
    session.execute(
        update(Operator)
        .where(Operator.id == operator_id)
        .values(last_heartbeat=now, due_at=now + timedelta(seconds=settings().heartbeat_timeout_seconds))
    )
    return now


def miss_heartbeat(session: Session, operator_id: str) -> datetime | None:
    """Count a missed heartbeat if one is overdue; returns when the last one came, None when nothing was overdue.

    Nothing more is due until the operator sends its recovery heartbeat.
    """
    return session.scalars(
        update(Operator)
        .where(Operator.id == operator_id, Operator.due_at <= func.clock_timestamp())
        .values(due_at=None, heartbeats_missed=Operator.heartbeats_missed + 1)
        .returning(Operator.last_heartbeat)
    ).first()
