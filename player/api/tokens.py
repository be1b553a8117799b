"""Access tokens: JWTs of 15 minutes, signed with the newest of ``JWT_KEYS`` (interface section 5).

The one rule kept here: a token is accepted for exactly what we sign: HS256, a key id we know, our issuer and audience,
not expired. It names a session and is worth nothing once that has ended.
"""

from datetime import datetime, timedelta
from uuid import UUID

import jwt

from player.settings import settings
from protocol.errors import Unauthenticated

LIFETIME_SECONDS = 900
_ISSUER = "lottery-operator"
_AUDIENCE = "player-api"
_REQUIRED = ["exp", "iat", "iss", "aud", "sub", "sid"]


def issue_access_token(player_id: int, session_id: UUID, now: datetime) -> str:
    """A token for the player's session, valid for 900 seconds from ``now`` (UTC)."""
    kid, secret = settings().jwt_keys[0]
    claims = {
        "iss": _ISSUER,
        "aud": _AUDIENCE,
        "sub": str(player_id),
        "sid": str(session_id),
        "iat": now,
        "exp": now + timedelta(seconds=LIFETIME_SECONDS),
    }
    return jwt.encode(claims, secret, algorithm="HS256", headers={"kid": kid})


def session_of_access_token(token: str) -> tuple[int, UUID]:
    """The player and the session a token speaks for.

    :raises Unauthenticated: not a token of ours, or expired.
    """
    try:
        secret = dict(settings().jwt_keys)[str(jwt.get_unverified_header(token).get("kid"))]
        claims = jwt.decode(
            token,
            secret,
            algorithms=["HS256"],
            audience=_AUDIENCE,
            issuer=_ISSUER,
            # Issued by the database's clock, which may be ahead of ours.
            options={"require": _REQUIRED, "verify_iat": False},
        )
        return int(claims["sub"]), UUID(claims["sid"])
    except (jwt.InvalidTokenError, KeyError, TypeError, ValueError):
        raise Unauthenticated("the access token is invalid or expired", code="invalid_token") from None
