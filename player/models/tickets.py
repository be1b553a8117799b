"""Tickets that players bought, and the batches in which they go to the coordinator.

The one rule kept here: a ticket's numbers never change (the database refuses it), so that sending a batch again says
the same as before; a ticket belongs to one batch for good.
"""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Boolean, CheckConstraint, ForeignKey, Index, LargeBinary, select, text
from sqlalchemy.orm import Mapped, Session, mapped_column

from player.models.base import BYTE_ORDER, Base, Created, Micro, Number
from protocol.errors import NotFound

STATUSES = ("active", "won", "lost", "refunded")
"""``refunded``: the round failed, or this operator was excluded from it, and the price was given back."""


class Ticket(Base):
    """One ticket. ``ticket_id`` is what the coordinator knows it by; ``proof`` its RFC 6962 audit path once sealed."""

    __tablename__ = "tickets"
    __table_args__ = (
        CheckConstraint("status IN ('active', 'won', 'lost', 'refunded')", name="status"),
        Index("ix_tickets_player_id_id", "player_id", "id"),
        Index("ix_tickets_round_id_ticket_id", "round_id", "ticket_id"),
        Index("ix_tickets_unsent", "round_id", postgresql_where=text("submission_id IS NULL")),
        Index("ix_tickets_submission_id", "submission_id"),
        Index("ix_tickets_active", "round_id", postgresql_where=text("status = 'active'")),
    )

    id: Mapped[Number]
    ticket_id: Mapped[str] = mapped_column(BYTE_ORDER, unique=True)
    player_id: Mapped[int] = mapped_column(ForeignKey("players.id"))
    round_id: Mapped[int] = mapped_column(ForeignKey("rounds.id"))
    jackpot_number: Mapped[int]
    bonus1: Mapped[int]
    bonus2: Mapped[int]
    bonus3: Mapped[int]
    bonus4: Mapped[int]
    bonus5: Mapped[int]
    is_quick_pick: Mapped[bool] = mapped_column(Boolean)
    price: Mapped[Micro]
    status: Mapped[str] = mapped_column(server_default="active")
    winnings: Mapped[Micro | None]
    purchased_at: Mapped[Created]
    submission_id: Mapped[int | None] = mapped_column(ForeignKey("submissions.id"))
    leaf_index: Mapped[int | None]
    proof: Mapped[bytes | None] = mapped_column(LargeBinary)


class Submission(Base):
    """A batch of a round's tickets, and whether the coordinator has taken it."""

    __tablename__ = "submissions"
    __table_args__ = (
        Index("ix_submissions_open", "round_id", postgresql_where=text("accepted_at IS NULL")),
        Index("ix_submissions_round_id", "round_id"),
    )

    id: Mapped[Number]
    round_id: Mapped[int] = mapped_column(ForeignKey("rounds.id"))
    tickets: Mapped[int]
    created_at: Mapped[Created]
    attempts: Mapped[int] = mapped_column(server_default="0")
    accepted_at: Mapped[datetime | None]
    last_error: Mapped[str | None]


def tickets_of(
    session: Session,
    player_id: int,
    *,
    status: str | None = None,
    round_id: int | None = None,
    limit: int = 50,
    offset: int = 0,
) -> Sequence[Ticket]:
    """A player's tickets, newest first; of one of STATUSES and of one round, if those are given."""
    wanted = select(Ticket).where(Ticket.player_id == player_id)
    if status is not None:
        wanted = wanted.where(Ticket.status == status)
    if round_id is not None:
        wanted = wanted.where(Ticket.round_id == round_id)
    return session.scalars(wanted.order_by(Ticket.id.desc()).limit(limit).offset(offset)).all()


def ticket_of(session: Session, player_id: int, number: int) -> Ticket:
    """One of a player's own tickets.

    :raises NotFound: she has no such ticket.
    """
    row = session.scalars(select(Ticket).where(Ticket.id == number, Ticket.player_id == player_id)).first()
    if row is None:
        raise NotFound("no such ticket")
    return row
