"""What the account endpoints read and show: credentials, tokens, the player (interface sections 2.12, 4.4 and 5)."""

from typing import Any

from marshmallow import Schema, ValidationError, fields
from marshmallow.validate import Email
from sqlalchemy.orm import Session

from player.api.fields import Moment, Text, Whole
from player.api.tokens import LIFETIME_SECONDS, issue_access_token
from player.models.passwords import LONGEST, SHORTEST
from player.models.players import Player
from player.models.session import database_now
from player.models.sessions import Opened

LONGEST_EMAIL = 254
LONGEST_NAME = 80


class EmailAddress(Text):
    """An e-mail address that mail can be sent to anywhere: ASCII, without blanks or control characters."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(longest=LONGEST_EMAIL, shortest=3, **kwargs)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        Email()(text)
        if not text.isascii() or not text.isprintable() or " " in text:
            raise ValidationError("Not an address in plain ASCII; write its domain as xn--….")
        return text


def new_password_field(**kwargs: Any) -> Text:
    """A password that is chosen now."""
    words = f"{SHORTEST} to {LONGEST} characters, and not the e-mail address"
    return Text(required=True, shortest=SHORTEST, longest=LONGEST, metadata={"description": words}, **kwargs)


def known_password_field() -> Text:
    """A password that is proof. Longer than any password can be is refused before it costs anything."""
    return Text(required=True, longest=LONGEST)


class RegistrationSchema(Schema):
    """A new account."""

    email = EmailAddress(required=True)
    password = new_password_field()
    displayName = Text(required=True, shortest=1, longest=LONGEST_NAME)


class LoginSchema(Schema):
    """Who says to be whom."""

    email = Text(required=True, longest=LONGEST_EMAIL)
    password = known_password_field()


class RefreshTokenSchema(Schema):
    """A refresh token."""

    refreshToken = Text(required=True, longest=200)


class ForgottenSchema(Schema):
    """The address of the account whose password was forgotten."""

    email = EmailAddress(required=True)


class ResetSchema(Schema):
    """A token that came by mail, and the password it sets."""

    token = Text(required=True, longest=200)
    newPassword = new_password_field()


class PasswordChangeSchema(Schema):
    """The password as it is and as it shall be."""

    currentPassword = known_password_field()
    newPassword = new_password_field()


class TokensSchema(Schema):
    """A pair of tokens."""

    accessToken = fields.String(required=True, metadata={"description": "sent as Authorization: Bearer …"})
    refreshToken = fields.String(required=True, metadata={"description": "good for one refresh within 7 days"})
    expiresIn = Whole(required=True, metadata={"description": "the access token's lifetime in seconds"})


class PlayerSchema(Schema):
    """A player (interface section 2.12)."""

    id = Whole(required=True)
    email = fields.String(required=True)
    displayName = fields.String(required=True, attribute="display_name")
    kycLevel = fields.String(required=True, attribute="kyc_level", metadata={"description": "none, basic or full"})
    createdAt = Moment(required=True, attribute="created_at")


class LoggedInSchema(Schema):
    """A player and her tokens."""

    player = fields.Nested(PlayerSchema, required=True)
    tokens = fields.Nested(TokensSchema, required=True)


class SuccessSchema(Schema):
    """It is done."""

    success = fields.Boolean(required=True)


class SessionSchema(Schema):
    """A session: one login on one device."""

    id = fields.UUID(required=True)
    createdAt = Moment(required=True, attribute="created_at")
    lastUsedAt = Moment(
        required=True, attribute="last_used_at", metadata={"description": "when its tokens were refreshed last"}
    )
    address = fields.String(required=True, allow_none=True, metadata={"description": "where the login came from"})
    userAgent = fields.String(required=True, allow_none=True, attribute="user_agent")
    current = fields.Boolean(required=True, metadata={"description": "whether it is the session that asks"})


class SessionsSchema(Schema):
    """The sessions that go on."""

    sessions = fields.List(fields.Nested(SessionSchema), required=True)
    count = Whole(required=True)


class EndedSchema(SuccessSchema):
    """It is done."""

    ended = Whole(required=True, metadata={"description": "how many sessions were ended"})


def tokens_of(session: Session, opened: Opened) -> dict[str, Any]:
    """The pair of tokens with which a session goes on."""
    return {
        "accessToken": issue_access_token(opened.player_id, opened.session_id, database_now(session)),
        "refreshToken": opened.refresh_token,
        "expiresIn": LIFETIME_SECONDS,
    }


def logged_in(session: Session, row: Player, opened: Opened) -> dict[str, Any]:
    """The answer to whoever registered or logged in."""
    session.flush()
    return {"player": row, "tokens": tokens_of(session, opened)}
