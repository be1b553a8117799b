"""Prizes: what tickets won, by tier, and whether the player and the coordinator know it was paid.

The one rule kept here: a prize is claimed once, in the transaction that raises the balance.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, Row, Select, UniqueConstraint, select, text
from sqlalchemy.orm import Mapped, Session, mapped_column

from player.models.base import Base, Created, Micro, Number
from player.models.ledger import HOUSE
from player.models.players import lock_player
from player.models.rounds import Round
from player.models.session import database_now
from player.models.tickets import Ticket
from player.models.transactions import move
from protocol.errors import Conflict, NotFound

STATUSES = ("unclaimed", "claimed", "expired")


class Prize(Base):
    """One prize of one ticket, tier 1 to 5, or 0 for a share of the jackpot.

    ``amount`` is micro-USDC, and NULL until the round is settled, which is when it is certain. ``reported_at``: when
    the coordinator was told that it is paid.
    """

    __tablename__ = "prizes"
    __table_args__ = (
        UniqueConstraint("ticket", "tier"),
        CheckConstraint("tier BETWEEN 0 AND 5", name="tier"),
        CheckConstraint("status IN ('unclaimed', 'claimed', 'expired')", name="status"),
        CheckConstraint("(status = 'claimed') = (claimed_at IS NOT NULL)", name="claimed_when"),
        CheckConstraint("status = 'unclaimed' OR amount IS NOT NULL", name="certain"),
        Index("ix_prizes_player_id_id", "player_id", "id"),
        Index("ix_prizes_round_id", "round_id"),
        Index(
            "ix_prizes_unreported",
            "round_id",
            postgresql_where=text("status = 'claimed' AND reported_at IS NULL"),
        ),
    )

    id: Mapped[Number]
    ticket: Mapped[int] = mapped_column(ForeignKey("tickets.id"))
    player_id: Mapped[int] = mapped_column(ForeignKey("players.id"))
    round_id: Mapped[int] = mapped_column(ForeignKey("rounds.id"))
    tier: Mapped[int]
    amount: Mapped[Micro | None]
    status: Mapped[str] = mapped_column(server_default="unclaimed")
    created_at: Mapped[Created]
    claimed_at: Mapped[datetime | None]
    reported_at: Mapped[datetime | None]


def prizes_of(
    session: Session,
    player_id: int,
    *,
    status: str | None = None,
    round_id: int | None = None,
    limit: int = 50,
    offset: int = 0,
) -> Sequence[Row[Any]]:
    """A player's prizes whose amount is certain, newest first, each with the fields of ``_shown``."""
    wanted = _shown(player_id)
    if status is not None:
        wanted = wanted.where(Prize.status == status)
    if round_id is not None:
        wanted = wanted.where(Prize.round_id == round_id)
    return session.execute(wanted.order_by(Prize.id.desc()).limit(limit).offset(offset)).all()


def prizes_on(session: Session, player_id: int, ticket: int) -> Sequence[Row[Any]]:
    """The prizes of one of a player's tickets (by ``Ticket.id``), the jackpot first."""
    return session.execute(_shown(player_id).where(Prize.ticket == ticket).order_by(Prize.tier)).all()


def prize_of(session: Session, player_id: int, number: int) -> Row[Any]:
    """One of a player's own prizes.

    :raises NotFound: she has no such prize, or its amount is not certain yet.
    """
    row = session.execute(_shown(player_id).where(Prize.id == number)).first()
    if row is None:
        raise NotFound("no such prize")
    return row


def _shown(player_id: int) -> Select[*tuple[Any, ...]]:
    return (
        select(
            Prize.id,
            Ticket.ticket_id,
            Prize.round_id,
            Prize.tier,
            Prize.amount,
            Prize.status,
            Prize.claimed_at,
            Round.claim_deadline,
        )
        .join(Ticket, Ticket.id == Prize.ticket)
        .join(Round, Round.id == Prize.round_id)
        .where(Prize.player_id == player_id, Prize.amount.is_not(None))
    )


def claim_prize(session: Session, player_id: int, number: int) -> Prize:
    """Pay a player one of her prizes into her balance. Open to whoever excluded herself: it is her money.

    :raises NotFound: she has no such prize, or its amount is not certain yet.
    :raises Conflict: code ``already_claimed`` or ``prize_expired``.
    """
    lock_player(session, player_id)
    row = session.scalars(
        select(Prize)
        .where(Prize.id == number, Prize.player_id == player_id, Prize.amount.is_not(None))
        .with_for_update()
    ).first()
    if row is None or row.amount is None:
        raise NotFound("no such prize")
    if row.status == "claimed":
        raise Conflict("this prize was claimed before", code="already_claimed")
    deadline = session.scalars(select(Round.claim_deadline).where(Round.id == row.round_id)).one()
    now = database_now(session)
    if row.status == "expired" or (deadline is not None and deadline <= now):
        raise Conflict("the time for claiming this prize is over", code="prize_expired")
    ticket_id = session.scalars(select(Ticket.ticket_id).where(Ticket.id == row.ticket)).one()
    row.status, row.claimed_at = "claimed", now
    if row.amount:
        move(session, player_id, "prize", row.amount, HOUSE, once=f"prize:{row.id}", reference=ticket_id)
    return row
