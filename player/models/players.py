"""Players: who they are, what is known of them, and whether they may play.

The one rule kept here: self-exclusion only ever grows (the database refuses to shorten it).
"""

from datetime import datetime

from sqlalchemy import CheckConstraint, Index, func, select, text
from sqlalchemy.orm import Mapped, Session, mapped_column

from player.models.base import Base, Created, Number
from protocol.errors import Forbidden, NotFound

KYC_LEVELS = ("none", "basic", "full")
"""How well a player is known, from not at all to documents seen (interface section 2.12)."""


class Player(Base):
    """One player. ``email`` is kept as given and unique without regard to case."""

    __tablename__ = "players"
    __table_args__ = (
        Index("uq_players_email", text("lower(email)"), unique=True),
        CheckConstraint("kyc_level IN ('none', 'basic', 'full')", name="kyc_level"),
    )

    id: Mapped[Number]
    email: Mapped[str]
    password_hash: Mapped[str]
    display_name: Mapped[str]
    kyc_level: Mapped[str] = mapped_column(server_default="none")
    created_at: Mapped[Created]
    suspended_at: Mapped[datetime | None]
    suspended_reason: Mapped[str | None]
    self_excluded_until: Mapped[datetime | None]


def assert_not_suspended(since: datetime | None) -> None:
    """See that a player whose ``suspended_at`` this is may go on.

    :raises Forbidden: code ``suspended``.
    """
    if since is not None:
        raise Forbidden("the account is suspended", code="suspended")


def player(session: Session, player_id: int) -> Player:
    """One player.

    :raises NotFound: no such player.
    """
    row = session.get(Player, player_id)
    if row is None:
        raise NotFound("no such player")
    return row


def lock_player(session: Session, player_id: int) -> Player:
    """One player, about whom nobody else decides until this transaction ends: purchases, limits and exclusions
    of one player happen one after the other.

    :raises NotFound: no such player.
    """
    row = session.scalars(select(Player).where(Player.id == player_id).with_for_update(key_share=True)).first()
    if row is None:
        raise NotFound("no such player")
    return row


def by_email(session: Session, email: str) -> Player | None:
    """The player with this e-mail address, whatever the case it is written in."""
    return session.scalars(select(Player).where(func.lower(Player.email) == func.lower(email))).first()
