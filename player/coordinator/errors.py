"""What can go wrong between an operator and the coordinator, sorted by what the caller can do about it.

The one rule kept here: an error says what was asked, what came of it and nothing secret: no key, no token, no body that
was sent.

    CoordinatorError
    ├── TryLater           the same request may succeed later; all patience was spent on it already
    │   ├── Unreachable    no whole answer came: no connection, torn, or too late
    │   ├── RateLimited    429; `retry_after` says in how many seconds
    │   └── Unavailable    500, 502, 503, 504: nothing was done, or all of it
    ├── Refused            4xx: it stays what it is, however often it is sent; `status`, `code`, `error`, `details`
    │   ├── Unauthorized   401 the key is not, or no longer, known
    │   ├── Forbidden      403 suspended, not invited, excluded
    │   ├── NotFound       404 no such thing, or not yet
    │   ├── Conflict       409 fine in itself, but not now: look at the round's state
    │   └── Invalid        400, 413, 415, 422: repair what is sent; `details` says where
    └── Unreadable         an answer that the interface does not know: is this the coordinator's address?
"""

from __future__ import annotations

from typing import Any

_LONGEST = 300


class CoordinatorError(Exception):
    """Base of all errors of this client. `request`: what was asked, such as `GET /api/operator/me`."""

    def __init__(self, request: str, what: str) -> None:
        super().__init__(request, what)  # these, so that it can be pickled
        self.request = request
        self._said = f"{request}: {what}"

    def __str__(self) -> str:
        return self._said


class TryLater(CoordinatorError):
    """The request may be sent again as it is: what the coordinator takes counts once."""


class Unreachable(TryLater):
    """No whole answer came in time. Whether the request was taken is not known."""


class _Answered(CoordinatorError):
    def __init__(self, request: str, status: int, code: str, error: str, details: Any = None) -> None:
        # Only where it is wrong: what is said of a field may repeat what was sent.
        where = f" ({', '.join(map(str, details))[:_LONGEST]})" if isinstance(details, dict) and details else ""
        super().__init__(request, f"{status} {code}: {error}{where}" if code else f"{status} {error}{where}")
        self.args = (request, status, code, error, details)
        self.status = status
        self.code = code
        self.error = error
        self.details = details


class RateLimited(_Answered, TryLater):
    """Too many requests. `retry_after`: seconds until the next one may be sent, None where none were named."""

    retry_after: float | None = None


class Unavailable(_Answered, TryLater):
    """The coordinator, or something on the way to it, cannot answer now."""


class Refused(_Answered):
    """The coordinator will not do it. `code` is for programs, `error` a sentence, `details` what is wrong where."""


class Unauthorized(Refused):
    """The API key is not known, or was replaced."""


class Forbidden(Refused):
    """The key is known and may not do this."""


class NotFound(Refused):
    """No such thing; or it does not exist yet, such as a draw."""


class Conflict(Refused):
    """It contradicts what is on record, or comes at the wrong time."""


class Invalid(Refused):
    """It can never be accepted as it is."""


class Unreadable(CoordinatorError):
    """The answer is not one of the interface's."""


_BY_STATUS: dict[int, type[_Answered]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    400: Invalid,
    413: Invalid,
    415: Invalid,
    422: Invalid,
    429: RateLimited,
}


def refusal(request: str, status: int, body: Any) -> CoordinatorError:
    """The error that an answer with this status (300 to 599) and parsed body (None where it was no JSON) stands for."""
    if status < 400:
        # Followed, it would take the key to another address. The coordinator never redirects.
        return Unreadable(request, f"answered by a redirect ({status}); is the address complete?")
    said = body if isinstance(body, dict) else {}
    code, error = (said[name] if isinstance(said.get(name), str) else "" for name in ("code", "error"))
    kind = _BY_STATUS.get(status, Unavailable if status >= 500 else Refused)
    return kind(request, status, code, error[:_LONGEST] or "no reason given", said.get("details"))
