"""Accounts: opening one, proving to be its owner, and a new password for it.

The one rule kept here: passwords are hashed and compared between two transactions, and what was true in the first is
looked at again in the second, under the player's row.
"""

from sqlalchemy import func, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from player.models.mails import write_mail
from player.models.passwords import hash_password, is_outdated, password_matches
from player.models.players import Player, assert_not_suspended, by_email, lock_player, player
from player.models.session import transaction
from player.models.sessions import PasswordReset
from protocol.errors import Conflict, Forbidden, Unauthenticated

EMAIL_TAKEN = Conflict("there is an account with this e-mail address already", code="email_taken")
WRONG_LOGIN = Unauthenticated("unknown e-mail address or wrong password", code="invalid_credentials")
WRONG_PASSWORD = Forbidden("the current password is not right", code="wrong_password")


def password_for(email: str, password: str) -> str:
    """The hash of the password of an account that is about to be opened.

    :raises Conflict: code ``email_taken``.
    :raises Invalid: code ``weak_password``.
    """
    with transaction() as session:
        taken = by_email(session, email) is not None
    if taken:
        raise Conflict(EMAIL_TAKEN.message, code=EMAIL_TAKEN.code)
    return hash_password(password, email)


def open_account(session: Session, email: str, password_hash: str, display_name: str) -> Player:
    """A new player.

    :raises Conflict: code ``email_taken``.
    """
    row = Player(email=email, password_hash=password_hash, display_name=display_name)
    try:
        with session.begin_nested():
            session.add(row)
    except IntegrityError as error:
        # Somebody was faster; the database has the last word.
        if "uq_players_email" not in str(error.orig):
            raise
        raise Conflict(EMAIL_TAKEN.message, code=EMAIL_TAKEN.code) from None
    return row


def proven_owner(email: str, password: str) -> tuple[int, str]:
    """The player whose e-mail address and password these are, and the password's hash, for ``still_owner``.

    :raises Unauthenticated: code ``invalid_credentials``, whichever of the two is wrong, after the same time.
    """
    with transaction() as session:
        row = by_email(session, email)
    if not password_matches(row.password_hash if row else None, password) or row is None:
        raise Unauthenticated(WRONG_LOGIN.message, code=WRONG_LOGIN.code)
    if not is_outdated(row.password_hash):
        return row.id, row.password_hash
    stronger = hash_password(password, "")
    with transaction() as session:
        session.execute(
            update(Player)
            .where(Player.id == row.id, Player.password_hash == row.password_hash)
            .values(password_hash=stronger)
        )
    return row.id, stronger


def still_owner(session: Session, player_id: int, password_hash: str) -> Player:
    """The player, held, if the password that was proven is still hers and she may log in.

    :raises Unauthenticated: the password was changed meanwhile.
    :raises Forbidden: code ``suspended``.
    """
    row = lock_player(session, player_id)
    if row.password_hash != password_hash:
        raise Unauthenticated(WRONG_LOGIN.message, code=WRONG_LOGIN.code)
    assert_not_suspended(row.suspended_at)
    return row


def new_password(player_id: int, current: str, new: str) -> tuple[str, str]:
    """The hashes of a player's current password, which she proves to know, and of the new one.

    :raises Forbidden: code ``wrong_password``.
    :raises Invalid: code ``weak_password``.
    """
    with transaction() as session:
        row = player(session, player_id)
    if not password_matches(row.password_hash, current):
        raise Forbidden(WRONG_PASSWORD.message, code=WRONG_PASSWORD.code)
    return row.password_hash, hash_password(new, row.email)


def set_password(session: Session, row: Player, password_hash: str) -> None:
    """Give a player, whose row is held, a new password; reset tokens she has been sent become useless."""
    row.password_hash = password_hash
    now = func.clock_timestamp()
    session.execute(
        update(PasswordReset)
        .where(PasswordReset.player_id == row.id, PasswordReset.spent_at.is_(None))
        .values(spent_at=now)
    )
    write_mail(
        session,
        row,
        "Your password was changed",
        "The password of your account was changed, and every other session was ended.\n\n"
        "If that was not you, ask for a new password now and tell us.\n",
    )
