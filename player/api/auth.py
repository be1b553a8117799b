"""``/api/auth/…`` for those who are not logged in: register, log in, refresh, log out, a forgotten password (interface
sections 4.4 and 5).

The one rule kept here: an answer does not tell whether somebody has an account, as far as registering allows that: to
a wrong login and to a forgotten password every address gets the same answer after the same time.
"""

import time
from typing import Any

from flask import request
from flask.views import MethodView
from sqlalchemy.orm import Session

from player.api.accounts import (
    ForgottenSchema,
    LoggedInSchema,
    LoginSchema,
    RefreshTokenSchema,
    RegistrationSchema,
    ResetSchema,
    SuccessSchema,
    TokensSchema,
    logged_in,
    tokens_of,
)
from player.api.guesses import one_guess
from player.api.parsing import Blueprint
from player.models.accounts import open_account, password_for, proven_owner, still_owner
from player.models.password_resets import reset_owner, reset_password, send_reset
from player.models.passwords import hash_password
from player.models.players import assert_not_suspended, player
from player.models.session import transaction
from player.models.sessions import Opened, continue_session, end_session_of, start_session
from player.settings import settings
from protocol.errors import Unauthenticated

ANSWER_AFTER_SECONDS = 0.25
"""How long a forgotten password takes to answer, whatever was done: longer than writing a mail does."""

blueprint = Blueprint("auth", __name__, url_prefix="/api/auth", description="Registering, logging in, tokens")


def _start(session: Session, player_id: int) -> Opened:
    return start_session(session, player_id, request.remote_addr, request.headers.get("User-Agent"))


@blueprint.route("/register")
class Register(MethodView):
    """A new account."""

    @blueprint.arguments(RegistrationSchema)
    @blueprint.response(201, LoggedInSchema)
    def post(self, body: dict[str, str]) -> dict[str, Any]:
        """Open an account and log in. 409 ``email_taken`` if there is one with this address, in whatever case."""
        password_hash = password_for(body["email"], body["password"])
        with transaction() as session:
            row = open_account(session, body["email"], password_hash, body["displayName"])
            return logged_in(session, row, _start(session, row.id))


@blueprint.route("/login")
class Login(MethodView):
    """E-mail address and password → tokens."""

    @blueprint.arguments(LoginSchema)
    @blueprint.response(200, LoggedInSchema)
    def post(self, body: dict[str, str]) -> dict[str, Any]:
        """Log in. 401 ``invalid_credentials`` if address or password are wrong; 403 if the account is suspended.
        Players who excluded themselves can log in: their winnings are theirs. 429 also for whoever goes on guessing
        one account's password from a network that its player is not known to use."""
        with one_guess(body["email"], request.remote_addr):
            player_id, password_hash = proven_owner(body["email"], body["password"])
        with transaction() as session:
            row = still_owner(session, player_id, password_hash)
            return logged_in(session, row, _start(session, row.id))


@blueprint.route("/refresh")
class Refresh(MethodView):
    """Refresh token → new pair."""

    @blueprint.arguments(RefreshTokenSchema)
    @blueprint.response(200, TokensSchema)
    def post(self, body: dict[str, str]) -> dict[str, Any]:
        """Exchange a refresh token for a new pair. A token used twice ends its session: 401 from then on."""
        with transaction() as session:
            opened = continue_session(session, body["refreshToken"])
            if opened is not None:
                assert_not_suspended(player(session, opened.player_id).suspended_at)
            pair = None if opened is None else tokens_of(session, opened)
        # Raised outside the transaction: ending the session of a token used twice must be committed.
        if pair is None:
            raise Unauthenticated("the refresh token is unknown, expired or was used", code="invalid_token")
        return pair


@blueprint.route("/logout")
class Logout(MethodView):
    """End a session."""

    @blueprint.arguments(RefreshTokenSchema)
    @blueprint.response(200, SuccessSchema)
    def post(self, body: dict[str, str]) -> dict[str, bool]:
        """End the session of a refresh token, access tokens and all. An unknown token is no error: it is worth
        nothing, as asked."""
        with transaction() as session:
            end_session_of(session, body["refreshToken"])
        return {"success": True}


@blueprint.route("/password/forgot")
class ForgottenPassword(MethodView):
    """A mail with a token."""

    @blueprint.arguments(ForgottenSchema)
    @blueprint.response(202, SuccessSchema)
    def post(self, body: dict[str, str]) -> dict[str, bool]:
        """Send a token that sets a new password, good once within the hour, to the account's address. The answer is
        the same whether there is such an account or not."""
        answer_at = time.monotonic() + ANSWER_AFTER_SECONDS
        send_reset(body["email"], settings().public_url)
        time.sleep(max(0.0, answer_at - time.monotonic()))
        return {"success": True}


@blueprint.route("/password/reset")
class PasswordReset(MethodView):
    """A new password by token."""

    @blueprint.arguments(ResetSchema)
    @blueprint.response(200, SuccessSchema)
    def post(self, body: dict[str, str]) -> dict[str, bool]:
        """Set a new password with a token that came by mail. Ends every session; log in with the new password."""
        owner = reset_owner(body["token"])
        password_hash = hash_password(body["newPassword"], owner.email)
        with transaction() as session:
            reset_password(session, body["token"], owner.id, password_hash)
        return {"success": True}
