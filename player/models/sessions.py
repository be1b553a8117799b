"""Sessions: one a login, with the refresh tokens that followed each other in it.

The one rule kept here: a secret is shown once, when it is made; what is stored can only recognise it. A refresh token
used twice ends its session.
"""

from datetime import datetime
from uuid import UUID, uuid4

from sqlalchemy import ForeignKey, LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from player.models.base import Base, Created, Instant


class PlayerSession(Base):
    """A login on one device. Access tokens name it and die with it."""

    __tablename__ = "player_sessions"

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    player_id: Mapped[int] = mapped_column(ForeignKey("players.id"), index=True)
    created_at: Mapped[Created]
    last_used_at: Mapped[Created]
    address: Mapped[str | None]
    user_agent: Mapped[str | None]
    ended_at: Mapped[datetime | None]


class RefreshToken(Base):
    """One refresh token of a session, good for one use within 7 days."""

    __tablename__ = "refresh_tokens"

    digest: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    session_id: Mapped[UUID] = mapped_column(ForeignKey("player_sessions.id"), index=True)
    expires_at: Mapped[Instant]
    spent_at: Mapped[datetime | None]


class PasswordReset(Base):
    """A token sent to a player's e-mail address that sets a new password, once, within the hour."""

    __tablename__ = "password_resets"

    digest: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    player_id: Mapped[int] = mapped_column(ForeignKey("players.id"), index=True)
    expires_at: Mapped[Instant]
    spent_at: Mapped[datetime | None]
