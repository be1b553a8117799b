"""Rounds: their rows, their log and their timeline.

The one rule kept here: a round changes state only under its row's lock, by ``models.rounds.change_state``, along a
row of
``protocol.lifecycle.TRANSITIONS``; the database refuses any other pair. Round ids are 1, 2, 3, … without a gap.
"""

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    TIMESTAMP,
    BigInteger,
    CheckConstraint,
    Enum,
    ForeignKey,
    Index,
    LargeBinary,
    func,
    select,
    text,
    update,
)
from sqlalchemy.orm import Mapped, Session, mapped_column

from models.base import Base, Created, Due, Instant, Micro, Whole
from protocol.errors import NotFound
from protocol.lifecycle import Deadlines, State, Transition, Trigger
from protocol.rules import Rules
from protocol.seed import BeaconRound

ROUND_STATE = Enum(State, name="round_state", values_callable=lambda states: [state.value for state in states])


class Round(Due, Base):
    """One draw cycle. ``due_at`` is when its state next has to be looked at."""

    __tablename__ = "rounds"
    __table_args__ = (
        Index("ix_rounds_ring", "ring_at", postgresql_where=text("due_at IS NOT NULL")),
        Index("ix_rounds_state", "state"),
        CheckConstraint(
            "seal_at <= sealing_deadline AND sealing_deadline <= escrow_deadline "
            "AND escrow_deadline <= scheduled_draw_time AND scheduled_draw_time <= settle_at AND settle_at <= close_at",
            name="deadlines_in_order",
        ),
        CheckConstraint("(state = 'FAILED') = (failure_reason IS NOT NULL)", name="failed_with_a_reason"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    state: Mapped[State] = mapped_column(ROUND_STATE)
    created_at: Mapped[Created]
    seal_at: Mapped[Instant]
    sealing_deadline: Mapped[Instant]
    escrow_deadline: Mapped[Instant]
    scheduled_draw_time: Mapped[Instant]
    settle_at: Mapped[Instant]
    close_at: Mapped[Instant]

    rules: Mapped[dict[str, Any]]
    rules_hash: Mapped[str]
    mode: Mapped[str]
    seed_commit: Mapped[str]
    secret_encrypted: Mapped[bytes | None] = mapped_column(LargeBinary)
    beacon_chain_hash: Mapped[str | None]
    beacon_round: Mapped[int | None]

    previous_round_hash: Mapped[str | None]
    full_manifest_hash: Mapped[str | None]
    chained_anchor_hash: Mapped[str | None]
    effective_manifest_hash: Mapped[str | None]
    settlement_hash: Mapped[str | None]
    sealed_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    failure_reason: Mapped[str | None]
    abort_reason: Mapped[str | None]

    operator_count: Mapped[int] = mapped_column(server_default="0")
    escrowed_operator_count: Mapped[int] = mapped_column(server_default="0")
    excluded_operator_count: Mapped[int] = mapped_column(server_default="0")
    total_tickets: Mapped[int | None] = mapped_column(BigInteger)
    total_deposited: Mapped[Micro] = mapped_column(server_default="0")
    worst_case_usdc: Mapped[int | None] = mapped_column(Whole)
    coverage_usdc: Mapped[Micro | None]

    @property
    def deadlines(self) -> Deadlines:
        """When each stage ends."""
        return Deadlines(
            self.seal_at,
            self.sealing_deadline,
            self.escrow_deadline,
            self.scheduled_draw_time,
            self.settle_at,
            self.close_at,
        )

    @property
    def parsed_rules(self) -> Rules:
        """The rules as snapshotted when the round opened."""
        return Rules.from_hashed(self.rules)

    @property
    def anchored_beacon(self) -> BeaconRound | None:
        """The beacon round the draw will wait for; None in commit-reveal."""
        if self.beacon_chain_hash is None or self.beacon_round is None:
            return None
        return BeaconRound(self.beacon_chain_hash, self.beacon_round)


class RoundEvent(Base):
    """An entry of the public log (interface section 2.2)."""

    __tablename__ = "round_events"
    __table_args__ = (Index("ix_round_events_round_id_id", "round_id", "id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    round_id: Mapped[int] = mapped_column(ForeignKey("rounds.id"))
    type: Mapped[str]
    data: Mapped[dict[str, Any]]
    created_at: Mapped[Created]


class RoundTransition(Base):
    """One step of a round's timeline, for the admin side. Kept for every step, the unpublished ones too."""

    __tablename__ = "round_transitions"
    __table_args__ = (Index("ix_round_transitions_round_id_id", "round_id", "id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    round_id: Mapped[int] = mapped_column(ForeignKey("rounds.id"))
    trigger: Mapped[str]
    from_state: Mapped[State | None] = mapped_column(ROUND_STATE)
    to_state: Mapped[State] = mapped_column(ROUND_STATE)
    due_at: Mapped[datetime | None] = mapped_column(TIMESTAMP(timezone=True))
    at: Mapped[Created]


class RoundSchedule(Due, Base):
    """When the next round opens by itself: a single row, made from ROUND_SCHEDULE. ``due_at`` is that moment."""

    __tablename__ = "round_schedule"
    __table_args__ = (CheckConstraint("id = 1", name="single_row"),)

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    cron: Mapped[str]


def round_by_id(session: Session, round_id: int | None) -> Round:
    """One round.

    :raises NotFound: no such round.
    """
    row = session.get(Round, round_id) if round_id is not None and 0 < round_id < 2**63 else None
    if row is None:
        raise NotFound("no such round")
    return row


def lock_round(session: Session, round_id: int) -> Round | None:
    """Take the round for a change of state; None when it does not exist or somebody else is at work on it. Those who
    hold it (``hold_round``) are waited for, and whoever wants to hold it then waits for us.

    The lock is the lease: it ends with the transaction, and with the process that held it, whatever ended that.
    """
    # Not FOR UPDATE: whoever merely refers to the round (a foreign key) is in nobody's way.
    mine = select(Round.id).where(Round.id == round_id).with_for_update(skip_locked=True, key_share=True)
    if session.scalar(mine) is None:
        return None
    session.execute(select(func.take_round(round_id)))
    # Read now: with what was written while we waited.
    return session.get(Round, round_id, populate_existing=True)


def hold_round(session: Session, round_id: int | None) -> Round:
    """Read a round and keep its state as it is until this transaction ends, beside others that do the same. Its row
    is left to those who only note something in it.

    :raises NotFound: no such round.
    """
    if round_id is None or not 0 < round_id < 2**63:
        raise NotFound("no such round")
    session.execute(select(func.hold_round(round_id)))
    row = session.get(Round, round_id, populate_existing=True)
    if row is None:
        raise NotFound("no such round")
    return row


def change_state(
    session: Session, row: Round, trigger: Trigger, step: Transition, log_data: dict[str, Any] | None = None
) -> None:
    """Carry a round along one row of the table: the new state, the timeline and the public log.

    The caller holds the lock of ``lock_round`` and writes the webhooks.
    """
    note_transition(session, row.id, trigger, row.state, step.to, row.due_at)
    row.state = step.to
    if step.log is not None:
        note_event(session, row.id, step.log, log_data or {})
    session.flush()


def note_event(session: Session, round_id: int, kind: str, data: dict[str, Any]) -> None:
    """Write one entry of the public log."""
    session.add(RoundEvent(round_id=round_id, type=kind, data=data))


def note_transition(
    session: Session,
    round_id: int,
    trigger: Trigger,
    from_state: State | None,
    to_state: State,
    due_at: datetime | None = None,
) -> None:
    """Write one step of the timeline."""
    session.add(
        RoundTransition(
            round_id=round_id, trigger=trigger.value, from_state=from_state, to_state=to_state, due_at=due_at
        )
    )


def wake_round(session: Session, round_id: int, in_seconds: float = 0.0) -> None:
    """Make the round due, and its bell ready to ring, ``in_seconds`` from now."""
    moment = func.clock_timestamp() + timedelta(seconds=in_seconds)
    session.execute(update(Round).where(Round.id == round_id).values(due_at=moment, ring_at=moment))


def request_abort(session: Session, round_id: int, reason: str) -> None:
    """Note that the round is to be failed, and why; the first reason given stands."""
    now = func.clock_timestamp()
    session.execute(
        update(Round)
        .where(Round.id == round_id)
        .values(abort_reason=func.coalesce(Round.abort_reason, reason), due_at=now, ring_at=now)
        .execution_options(synchronize_session=False)
    )


def events_of(session: Session, round_id: int) -> list[RoundEvent]:
    """The round's public log, oldest first."""
    return list(session.scalars(select(RoundEvent).where(RoundEvent.round_id == round_id).order_by(RoundEvent.id)))


def timeline_of(session: Session, round_id: int) -> list[RoundTransition]:
    """Every step the round took, oldest first."""
    return list(
        session.scalars(
            select(RoundTransition).where(RoundTransition.round_id == round_id).order_by(RoundTransition.id)
        )
    )
