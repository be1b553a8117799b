"""Signatures between a provider and a node: HMAC-SHA-256 with ``PAYMENT_SECRET``, in hex.

The one rule kept here: what is signed says what it is for, so that one signature never passes for another.
"""

import hashlib
import hmac


def sign(secret: str, purpose: str, message: bytes) -> str:
    """The signature of ``message`` for ``purpose``, 64 hex digits."""
    return hmac.new(secret.encode(), purpose.encode() + b"\0" + message, hashlib.sha256).hexdigest()


def is_signed(secret: str, purpose: str, message: bytes, signature: str) -> bool:
    """Whether ``signature`` is that of ``message``; takes as long for a wrong one as for the right one."""
    return hmac.compare_digest(sign(secret, purpose, message).encode(), signature.encode())
