"""Errors as the API shows them: every failure becomes ``{error, code, details?}`` and a status.

The one rule kept here: never HTML, never a traceback, never a secret. The rules and the tables raise
``protocol.errors``, which know no HTTP; this page maps them.
"""

import logging
from typing import Any

from flask import Flask, Response, jsonify
from redis.exceptions import RedisError
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolExhausted
from werkzeug.exceptions import HTTPException

from protocol.errors import Conflict, Forbidden, Invalid, LotteryError, NotFound, Unauthenticated, Unavailable

log = logging.getLogger(__name__)

STATUS: dict[type[LotteryError], int] = {
    Invalid: 422,
    Unauthenticated: 401,
    Forbidden: 403,
    NotFound: 404,
    Conflict: 409,
    Unavailable: 503,
}
_UNAVAILABLE = Unavailable("the service cannot reach its database; try again shortly")


class BadRequest(LotteryError):
    """The request cannot even be read."""

    code = "bad_request"


class UnsupportedMediaType(LotteryError):
    """The body is not JSON."""

    code = "unsupported_media_type"


STATUS |= {BadRequest: 400, UnsupportedMediaType: 415}

# What werkzeug raises by itself, in our words.
_OURS = {
    404: ("no such path", "not_found"),
    405: ("this path does not take that method", "method_not_allowed"),
    413: ("the request body is too large", "too_large"),
    415: ("send JSON with Content-Type: application/json", "unsupported_media_type"),
    429: ("too many requests; wait as many seconds as Retry-After says", "rate_limited"),
}


def register(app: Flask) -> None:
    """Let every error of the application end here."""
    app.register_error_handler(LotteryError, _expected)
    app.register_error_handler(HTTPException, _of_werkzeug)
    for down in (OperationalError, InterfaceError, PoolExhausted, RedisError):
        app.register_error_handler(down, _engine_down)
    app.register_error_handler(Exception, _unexpected)


def _answer(status: int, body: dict[str, Any]) -> Response:
    response = jsonify(body)
    response.status_code = status
    if status == 401:
        response.headers["WWW-Authenticate"] = 'Bearer realm="player"'
    return response


def _expected(error: LotteryError) -> Response:
    status = next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), None)
    if status is None:
        return _unexpected(error)
    details = {} if error.details is None else {"details": error.details}
    return _answer(status, {"error": error.message, "code": error.code, **error.facts, **details})


def _of_werkzeug(error: HTTPException) -> Response:
    status = error.code or 500
    if status >= 500:
        return _unexpected(getattr(error, "original_exception", None) or error)
    name = error.name.lower()
    message, code = _OURS.get(status, (name, name.replace(" ", "_")))
    response = _answer(status, {"error": message, "code": code})
    for name in ("Allow", "Retry-After"):
        if said := error.get_response().headers.get(name):
            response.headers[name] = said
    return response


def _engine_down(error: Exception) -> Response:
    log.error("engine down", extra={"error": type(error).__name__})
    return _expected(_UNAVAILABLE)


def _unexpected(error: BaseException) -> Response:
    log.error("unexpected error", exc_info=error)
    return _answer(500, {"error": "something went wrong on our side", "code": "internal"})
