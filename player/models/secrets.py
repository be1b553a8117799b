"""Secrets that only have to be recognised: refresh tokens, reset tokens, staff keys.

The one rule kept here: a secret is shown once, when it is made; what is stored can only recognise it. They are 256
random bits, so their SHA-256 needs no salt and no slowness.
"""

import hashlib
from secrets import token_urlsafe


def fresh() -> str:
    """A new secret, URL-safe."""
    return token_urlsafe(32)


def digest(secret: str) -> bytes:
    """What is stored of it."""
    return hashlib.sha256(secret.encode()).digest()
