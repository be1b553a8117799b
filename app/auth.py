"""``/api/auth/…``: exchanging an API key for tokens, refreshing them, logging out (interface sections 4.3 and 5)."""

from typing import Any
from uuid import UUID

from flask.views import MethodView
from marshmallow import Schema, fields
from sqlalchemy.orm import Session

from app.documentation.declared import refuses
from app.fields import Text, Whole
from app.parsing import Blueprint
from app.tokens import LIFETIME_SECONDS, issue_access_token
from models.credentials import issue_refresh_token, operator_of_api_key, spend_refresh_token
from models.operators import Operator
from models.session import database_now, transaction
from protocol.errors import Forbidden, Unauthenticated

SUSPENDED = Forbidden("the operator is suspended", code="suspended")

blueprint = Blueprint("auth", __name__, url_prefix="/api/auth", description="Tokens")


class LoginSchema(Schema):
    """An operator's API key."""

    apiKey = Text(required=True, longest=200)


class RefreshSchema(Schema):
    """A refresh token."""

    refreshToken = Text(required=True, longest=200)


class TokensSchema(Schema):
    """A pair of tokens; ``expiresIn`` is the access token's lifetime in seconds."""

    accessToken = fields.String(required=True)
    refreshToken = fields.String(required=True)
    expiresIn = Whole(lowest=1, required=True)


class SuccessSchema(Schema):
    """It is done."""

    success = fields.Boolean(required=True)


def _pair(session: Session, operator_id: str, key_id: str, family: UUID | None = None) -> dict[str, Any]:
    row = session.get(Operator, operator_id)
    if row is None or not row.active:
        raise Forbidden(SUSPENDED.message, code=SUSPENDED.code)
    return {
        "accessToken": issue_access_token(operator_id, key_id, database_now(session)),
        "refreshToken": issue_refresh_token(session, operator_id, key_id, family),
        "expiresIn": LIFETIME_SECONDS,
    }


@blueprint.route("/operator/login")
class Login(MethodView):
    """API key → tokens."""

    @refuses(Unauthenticated("unknown or expired API key"), SUSPENDED)
    @blueprint.arguments(LoginSchema)
    @blueprint.response(200, TokensSchema)
    def post(self, body: dict[str, str]) -> dict[str, Any]:
        """Exchange an API key for an access token and a refresh token."""
        with transaction() as session:
            operator_id, key_id = operator_of_api_key(session, body["apiKey"])
            return _pair(session, operator_id, key_id)


@blueprint.route("/refresh")
class Refresh(MethodView):
    """Refresh token → new pair."""

    @refuses(
        Unauthenticated("the refresh token is unknown, expired or revoked", code="invalid_token"),
        SUSPENDED,
    )
    @blueprint.arguments(RefreshSchema)
    @blueprint.response(200, TokensSchema)
    def post(self, body: dict[str, str]) -> dict[str, Any]:
        """Exchange a refresh token for a new pair; the old one is revoked. Used twice, its whole family is."""
        with transaction() as session:
            spent = spend_refresh_token(session, body["refreshToken"])
            pair = _pair(session, spent.operator_id, spent.key_id, spent.family) if spent else None
        # Raised outside the transaction: revoking the family of a token used twice must be committed.
        if pair is None:
            raise Unauthenticated("the refresh token is unknown, expired or revoked", code="invalid_token")
        return pair


@blueprint.route("/logout")
class Logout(MethodView):
    """Revoke a refresh token."""

    @blueprint.arguments(RefreshSchema)
    @blueprint.response(200, SuccessSchema)
    def post(self, body: dict[str, str]) -> dict[str, bool]:
        """Revoke a refresh token. One that is unknown or revoked already is no error: it is not usable, as asked."""
        with transaction() as session:
            spend_refresh_token(session, body["refreshToken"])
        return {"success": True}
