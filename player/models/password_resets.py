"""Forgotten passwords: a token by mail, which sets a new one.

The one rule kept here: who asks learns nothing. Whether somebody has an address, is suspended, or asked too often is
seen in her mailbox only.
"""

from datetime import timedelta

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from player.models.accounts import set_password
from player.models.mails import write_mail
from player.models.players import Player, by_email, lock_player
from player.models.secrets import digest, fresh
from player.models.session import transaction
from player.models.sessions import PasswordReset, end_sessions
from protocol.errors import Invalid

RESET_LIFETIME = timedelta(hours=1)
RESETS_AT_ONCE = 3
"""Reset tokens of one player that are good at a time: nobody's mailbox is filled through us."""
UNUSABLE_RESET = Invalid("the reset token is unknown, expired or was used", code="invalid_reset_token")


def send_reset(email: str, public_url: str) -> None:
    """Send a token that sets a new password to the player with this address; nothing if nobody has it, if she is
    suspended, or if RESETS_AT_ONCE are on their way already.
    """
    with transaction() as session:
        found = by_email(session, email)
        if found is None:
            return
        row = lock_player(session, found.id)
        alive = select(func.count()).where(
            PasswordReset.player_id == row.id,
            PasswordReset.spent_at.is_(None),
            PasswordReset.expires_at > func.clock_timestamp(),
        )
        if row.suspended_at is not None or (session.scalar(alive) or 0) >= RESETS_AT_ONCE:
            return
        token = fresh()
        session.add(
            PasswordReset(digest=digest(token), player_id=row.id, expires_at=func.clock_timestamp() + RESET_LIFETIME)
        )
        write_mail(
            session,
            row,
            "Setting a new password",
            "Somebody, we hope you, asked for a new password for your account. Within an hour this token sets one,\n"
            f"once:\n\n    {token}\n\n"
            f"It is used at {public_url}. If it was not you, do nothing: your password stays as it is.\n",
        )


def reset_owner(token: str) -> Player:
    """The player a reset token was sent to.

    :raises Invalid: code ``invalid_reset_token``.
    """
    with transaction() as session:
        row = session.scalars(
            select(Player)
            .join(PasswordReset, PasswordReset.player_id == Player.id)
            .where(
                PasswordReset.digest == digest(token),
                PasswordReset.spent_at.is_(None),
                PasswordReset.expires_at > func.clock_timestamp(),
            )
        ).first()
    if row is None:
        raise Invalid(UNUSABLE_RESET.message, code=UNUSABLE_RESET.code)
    return row


def reset_password(session: Session, token: str, player_id: int, password_hash: str) -> None:
    """Use a reset token: the new password is set and every session ends.

    :raises Invalid: code ``invalid_reset_token``: another request used it first.
    """
    row = lock_player(session, player_id)
    used = session.execute(
        update(PasswordReset)
        .where(
            PasswordReset.digest == digest(token),
            PasswordReset.player_id == player_id,
            PasswordReset.spent_at.is_(None),
            PasswordReset.expires_at > func.clock_timestamp(),
        )
        .values(spent_at=func.clock_timestamp())
        .returning(PasswordReset.digest)
    ).first()
    if used is None:
        raise Invalid(UNUSABLE_RESET.message, code=UNUSABLE_RESET.code)
    set_password(session, row, password_hash)
    end_sessions(session, player_id)
