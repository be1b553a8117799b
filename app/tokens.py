"""Access tokens: JWTs of 15 minutes, signed with the newest of ``JWT_KEYS`` (interface section 5).

The one rule kept here: a token is accepted for exactly what we sign: HS256, a key id we know, our issuer and audience,
not expired.
"""

from datetime import datetime, timedelta

import jwt

from models.settings import settings
from protocol.errors import Unauthenticated

LIFETIME_SECONDS = 900
ISSUER = "lottery-coordinator"
AUDIENCE = "operator-api"
_ALGORITHM = "HS256"
_REQUIRED = ["exp", "iat", "iss", "aud", "sub", "key"]


def issue_access_token(operator_id: str, key_id: str, now: datetime) -> str:
    """A token for the operator, valid for 900 seconds from ``now`` (UTC)."""
    kid, secret = settings().jwt_keys[0]
    claims = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": operator_id,
        "key": key_id,
        "iat": now,
        "exp": now + timedelta(seconds=LIFETIME_SECONDS),
    }
    return jwt.encode(claims, secret, algorithm=_ALGORITHM, headers={"kid": kid})


def operator_of_access_token(token: str) -> tuple[str, str]:
    """The operator a token speaks for, and the API key it was obtained with.

    :raises Unauthenticated: not a token of ours, or expired.
    """
    try:
        kid = jwt.get_unverified_header(token).get("kid")
        secret = dict(settings().jwt_keys)[str(kid)]
        claims = jwt.decode(
            token,
            secret,
            algorithms=[_ALGORITHM],
            audience=AUDIENCE,
            issuer=ISSUER,
            options={"require": _REQUIRED},
        )
    except (jwt.InvalidTokenError, KeyError, TypeError):
        raise Unauthenticated("the access token is invalid or expired", code="invalid_token") from None
    return str(claims["sub"]), str(claims["key"])
