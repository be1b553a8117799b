"""Sessions: one a login, with the refresh tokens that followed each other in it.

The one rule kept here: a secret is shown once, when it is made; what is stored can only recognise it. A refresh token
used twice ends its session: one of the two who used it is not the player.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from sqlalchemy import ColumnElement, ForeignKey, LargeBinary, and_, func, select, update
from sqlalchemy.orm import Mapped, Session, mapped_column

from player.models.base import Base, Created, Instant
from player.models.players import Player
from player.models.secrets import digest, fresh
from protocol.errors import NotFound

REFRESH_LIFETIME = timedelta(days=7)


class PlayerSession(Base):
    """A login on one device. Access tokens name it and die with it."""

    __tablename__ = "player_sessions"

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4)
    player_id: Mapped[int] = mapped_column(ForeignKey("players.id"), index=True)
    created_at: Mapped[Created]
    last_used_at: Mapped[Created] = mapped_column(index=True)
    address: Mapped[str | None]
    user_agent: Mapped[str | None]
    ended_at: Mapped[datetime | None]


class RefreshToken(Base):
    """One refresh token of a session, good for one use within 7 days."""

    __tablename__ = "refresh_tokens"

    digest: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    session_id: Mapped[UUID] = mapped_column(ForeignKey("player_sessions.id"), index=True)
    expires_at: Mapped[Instant] = mapped_column(index=True)
    spent_at: Mapped[datetime | None]


class PasswordReset(Base):
    """A token sent to a player's e-mail address that sets a new password, once, within the hour."""

    __tablename__ = "password_resets"

    digest: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    player_id: Mapped[int] = mapped_column(ForeignKey("players.id"), index=True)
    expires_at: Mapped[Instant] = mapped_column(index=True)
    spent_at: Mapped[datetime | None]


@dataclass(frozen=True)
class Opened:
    """A session that goes on, and the refresh token that continues it: the only time it is seen."""

    player_id: int
    session_id: UUID
    refresh_token: str


def start_session(session: Session, player_id: int, address: str | None, user_agent: str | None) -> Opened:
    """A new session of a player who proved who she is."""
    row = PlayerSession(player_id=player_id, address=address, user_agent=user_agent and user_agent[:200])
    session.add(row)
    session.flush()
    return Opened(player_id, row.id, _issue(session, row.id))


def continue_session(session: Session, refresh_token: str) -> Opened | None:
    """Spend a refresh token and issue the next; None when it cannot be used.

    A token that was spent before ends its session, so the caller commits before it refuses. Of two who use one token
    at the same time one waits for the other here, and finds it spent.
    """
    now = func.clock_timestamp()
    spent = session.execute(
        update(RefreshToken)
        .where(
            RefreshToken.digest == digest(refresh_token),
            RefreshToken.spent_at.is_(None),
            RefreshToken.expires_at > now,
        )
        .values(spent_at=now)
        .returning(RefreshToken.session_id)
    ).first()
    if spent is None:
        _end(session, _behind(refresh_token, RefreshToken.spent_at.is_not(None)))
        return None
    used = session.execute(
        update(PlayerSession)
        .where(PlayerSession.id == spent.session_id, PlayerSession.ended_at.is_(None))
        .values(last_used_at=now)
        .returning(PlayerSession.player_id)
    ).first()
    return None if used is None else Opened(used.player_id, spent.session_id, _issue(session, spent.session_id))


def end_session_of(session: Session, refresh_token: str) -> None:
    """End the session that a refresh token belongs to. An unknown token has none."""
    _end(session, _behind(refresh_token))


def end_session(session: Session, player_id: int, session_id: UUID) -> None:
    """End one session of a player.

    :raises NotFound: she has no such session that goes on.
    """
    if not _end(session, PlayerSession.id == session_id, PlayerSession.player_id == player_id):
        raise NotFound("no such session")


def end_sessions(session: Session, player_id: int, *, but: UUID | None = None) -> int:
    """End all sessions of a player, ``but`` one if it is named; how many that were."""
    others = [] if but is None else [PlayerSession.id != but]
    return _end(session, PlayerSession.player_id == player_id, *others)


def sessions_of(session: Session, player_id: int) -> Sequence[PlayerSession]:
    """The sessions of a player that go on, the one used last first."""
    wanted = select(PlayerSession).where(PlayerSession.player_id == player_id, goes_on())
    return session.scalars(wanted.order_by(PlayerSession.last_used_at.desc(), PlayerSession.id)).all()


def addresses_of(session: Session, email: str) -> Sequence[str]:
    """From where the player with this e-mail address has logged in, for as long as logins are remembered
    (player.models.forgetting); nothing if there is no such player.
    """
    wanted = (
        select(PlayerSession.address)
        .join(Player, Player.id == PlayerSession.player_id)
        .where(func.lower(Player.email) == func.lower(email), PlayerSession.address.is_not(None))
    )
    return [address for address in session.scalars(wanted.distinct()) if address is not None]


def goes_on() -> ColumnElement[bool]:
    """Which sessions are not over."""
    # One was used last when its newest refresh token was issued, and cannot outlive that one.
    return and_(
        PlayerSession.ended_at.is_(None), PlayerSession.last_used_at > func.clock_timestamp() - REFRESH_LIFETIME
    )


def _issue(session: Session, session_id: UUID) -> str:
    token = fresh()
    session.add(
        RefreshToken(digest=digest(token), session_id=session_id, expires_at=func.clock_timestamp() + REFRESH_LIFETIME)
    )
    session.flush()
    return token


def _behind(refresh_token: str, *which: ColumnElement[bool]) -> ColumnElement[bool]:
    token = select(RefreshToken.session_id).where(RefreshToken.digest == digest(refresh_token), *which)
    return PlayerSession.id == token.scalar_subquery()


def _end(session: Session, *which: ColumnElement[bool]) -> int:
    ended = session.execute(
        update(PlayerSession)
        .where(*which, PlayerSession.ended_at.is_(None))
        .values(ended_at=func.clock_timestamp())
        .returning(PlayerSession.id)
    )
    return len(ended.all())
