"""The one family of errors that callers are expected to handle.

The rule: an error says what is wrong with the request or the state of the world, in words and in a stable
code; it knows nothing of HTTP. Whoever stands at an edge (a web handler, a command line) maps the class to an
answer.

    LotteryError           error
    ├── Invalid            invalid            the input can never be accepted as it is
    ├── Unauthenticated    unauthenticated    nobody, or nobody we know, is asking
    ├── Forbidden          forbidden          known, but not allowed to do this
    ├── NotFound           not_found          no such thing
    ├── Conflict           conflict           fine in itself, but not now or not again
    └── Unavailable        unavailable        an engine or a peer we need does not answer
"""

from __future__ import annotations

from typing import Any


class LotteryError(Exception):
    """Base of every expected error.

    `message` is a sentence for a person. `code` is for programs; each class has its own. `details` is
    anything that can be written as JSON, usually a list or a mapping per field. `facts` are extra top-level
    fields of the answer, such as `applicationId`.
    """

    code: str = "error"

    def __init__(self, message: str, *, code: str | None = None, details: Any = None, **facts: Any) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code
        self.details = details
        self.facts = facts


class Invalid(LotteryError):
    """The input can never be accepted as it is: malformed, out of range, contradictory."""

    code = "invalid"


class Unauthenticated(LotteryError):
    """The caller did not prove who it is."""

    code = "unauthenticated"


class Forbidden(LotteryError):
    """The caller is known but not allowed to do this."""

    code = "forbidden"


class NotFound(LotteryError):
    """The thing asked for does not exist."""

    code = "not_found"


class Conflict(LotteryError):
    """The request is fine in itself, but contradicts what is already on record."""

    code = "conflict"


class Unavailable(LotteryError):
    """Something we depend on does not answer; trying later may help."""

    code = "unavailable"
