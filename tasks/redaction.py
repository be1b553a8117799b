"""Taking secrets out of what is kept of a webhook attempt.

The one rule kept here: what a receiver sends back is kept for people to read, and receivers send back what they got.
Nothing that opens a door survives in it.
"""

import re
from typing import Final
from urllib.parse import urlsplit, urlunsplit

GONE: Final = "[redacted]"
_PATTERNS: Final = (
    # Our own keys, in full or cut off.
    re.compile(r"\b(?:sk|ak)_[0-9a-f]{8,16}_[0-9a-f]{8,64}"),
    re.compile(r"\bwhsec_[A-Za-z0-9+/=_-]{8,}"),
    # Signatures, and credentials of other people's systems.
    re.compile(r"\bv1,[A-Za-z0-9+/]{40,}={0,2}"),
    re.compile(r"(?i)(?<=bearer )[A-Za-z0-9._~+/=-]{8,}"),
    re.compile(r"(?i)(?<=basic )[A-Za-z0-9+/=]{8,}"),
    re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*"),
    re.compile(r'(?i)(?<=password":")[^"]+|(?<=password=)[^&\s"]+'),
)


def without_secrets(text: str, *known: str) -> str:
    """The text with every known secret, and everything that looks like one, replaced by ``[redacted]``."""
    for secret in known:
        text = text.replace(secret, GONE)
    for pattern in _PATTERNS:
        text = pattern.sub(GONE, text)
    return text


def without_query(url: str) -> str:
    """An address whose query, where people put tokens, is replaced."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(query=GONE if parts.query else "", fragment=""))
