"""What a ticket or operator may be called.

The rule: an identifier is 1 to 64 characters of `A-Z a-z 0-9 . _ : -`, so it needs no escaping in JSON, in a
file name of a POSIX system or in a URL path, and its order by bytes is its order by characters.

Implements docs/protocol.md, section 1 (notation).
"""

from __future__ import annotations

import re

IDENTIFIER_PATTERN = r"[A-Za-z0-9._:-]{1,64}"
"""The identifier as a regular expression, without anchors."""

_IDENTIFIER = re.compile(IDENTIFIER_PATTERN)


def is_identifier(text: object) -> bool:
    """Whether `text` may name a ticket or an operator (docs/protocol.md, section 1). Never raises."""
    return isinstance(text, str) and _IDENTIFIER.fullmatch(text) is not None
