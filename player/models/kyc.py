"""KYC: how well the operator knows a player. Players ask for a higher level, the operator's staff decides.

The one rule kept here: a request is decided once, and a player's level changes in the transaction that approves one.
"""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, select, text
from sqlalchemy.orm import Mapped, Session, mapped_column

from player.models.base import Base, Created, Number
from player.models.players import KYC_LEVELS, Player, lock_player
from player.models.session import database_now
from protocol.errors import Conflict, NotFound

STATUSES = ("pending", "approved", "rejected")


class KycRequest(Base):
    """A player's request for a level; ``document_reference`` names the documents where the operator keeps them."""

    __tablename__ = "kyc_requests"
    __table_args__ = (
        CheckConstraint("level IN ('basic', 'full')", name="level"),
        CheckConstraint("status IN ('pending', 'approved', 'rejected')", name="status"),
        CheckConstraint("(status = 'pending') = (decided_at IS NULL)", name="decided_or_pending"),
        Index("uq_kyc_requests_pending", "player_id", unique=True, postgresql_where=text("status = 'pending'")),
        Index("ix_kyc_requests_player_id_id", "player_id", "id"),
    )

    id: Mapped[Number]
    player_id: Mapped[int] = mapped_column(ForeignKey("players.id"))
    level: Mapped[str]
    document_reference: Mapped[str | None]
    status: Mapped[str] = mapped_column(server_default="pending")
    created_at: Mapped[Created]
    decided_at: Mapped[datetime | None]
    decided_by: Mapped[str | None]
    reason: Mapped[str | None]


def request_kyc(session: Session, row: Player, level: str, document_reference: str | None) -> KycRequest:
    """Ask for a level; ``row`` is held by the caller (``lock_player``).

    :raises Conflict: code ``kyc_pending``: a request waits already; ``kyc_reached``: she has that level or a higher.
    """
    if KYC_LEVELS.index(level) <= KYC_LEVELS.index(row.kyc_level):
        raise Conflict(f"the account has level {row.kyc_level} already", code="kyc_reached")
    waiting = select(KycRequest.id).where(KycRequest.player_id == row.id, KycRequest.status == "pending")
    if session.scalars(waiting).first() is not None:
        raise Conflict("a request is waiting for its decision already", code="kyc_pending")
    request = KycRequest(player_id=row.id, level=level, document_reference=document_reference)
    session.add(request)
    session.flush()
    return request


def kyc_requests_of(session: Session, player_id: int) -> Sequence[KycRequest]:
    """A player's requests, the newest first, 50 at the most."""
    wanted = select(KycRequest).where(KycRequest.player_id == player_id)
    return session.scalars(wanted.order_by(KycRequest.id.desc()).limit(50)).all()


def decide_kyc(session: Session, request_id: int, approve: bool, who: str, reason: str) -> KycRequest:
    """Decide a request in the name of ``who``; ``reason`` is shown to the player. An approval raises her level and
    never lowers it.

    :raises NotFound: no such request.
    :raises Conflict: code ``kyc_decided``: somebody decided it before.
    """
    request = session.get(KycRequest, request_id)
    if request is None:
        raise NotFound("no such KYC request")
    row = lock_player(session, request.player_id)
    # Read again, now that nobody else decides about this player.
    session.refresh(request)
    if request.status != "pending":
        raise Conflict(f"the request was {request.status} already", code="kyc_decided")
    now = database_now(session)
    request.decided_at, request.decided_by, request.reason = now, who, reason
    request.status = "approved" if approve else "rejected"
    if approve and KYC_LEVELS.index(request.level) > KYC_LEVELS.index(row.kyc_level):
        row.kyc_level = request.level
    session.flush()
    return request
