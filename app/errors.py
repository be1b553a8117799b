"""Errors as the API shows them: one place where every failure becomes ``{error, code, details?}`` and a status.

The one rule kept here: never HTML, never a traceback, never a secret. What the rules and the tables raise
(``protocol.errors``) knows no HTTP; this page maps it. An error nobody expected is logged and answered 500 without
its text.
"""

import logging
from http import HTTPStatus
from typing import Any

from flask import Flask, Response, jsonify
from gunicorn.http.errors import ParseException
from redis.exceptions import RedisError
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolExhausted
from werkzeug.exceptions import HTTPException, InternalServerError

from protocol.errors import (
    Conflict,
    Forbidden,
    Invalid,
    LotteryError,
    NotFound,
    Unauthenticated,
    Unavailable,
)

log = logging.getLogger(__name__)

STATUS: dict[type[LotteryError], int] = {
    Invalid: 422,
    Unauthenticated: 401,
    Forbidden: 403,
    NotFound: 404,
    Conflict: 409,
    Unavailable: 503,
}

# What werkzeug raises by itself, in our words.
_CODES = {
    400: "bad_request",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    415: "unsupported_media_type",
    429: "rate_limited",
}
_MESSAGES = {
    404: "no such path",
    405: "this path does not take that method",
    413: "the request body is too large",
    415: "send JSON with Content-Type: application/json",
    429: "too many requests; wait as many seconds as Retry-After says",
}


class BadRequest(LotteryError):
    """The request cannot even be read: not JSON, not gzip, not UTF-8."""

    code = "bad_request"


class TooLarge(LotteryError):
    """The body, or what it inflates to, is larger than it may be."""

    code = "too_large"


class UnsupportedMediaType(LotteryError):
    """The body is not in a form we read."""

    code = "unsupported_media_type"


STATUS |= {BadRequest: 400, TooLarge: 413, UnsupportedMediaType: 415}


def status_of(error: LotteryError) -> int:
    """The HTTP status of an error: that of the nearest of its classes that has one."""
    return next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 500)


def register(app: Flask) -> None:
    """Let every error of the application end here."""
    app.register_error_handler(LotteryError, _expected)
    app.register_error_handler(HTTPException, _from_werkzeug)
    app.register_error_handler(ParseException, _cut_short)
    app.register_error_handler(OperationalError, _engine_down)
    app.register_error_handler(InterfaceError, _engine_down)
    app.register_error_handler(PoolExhausted, _engine_down)
    app.register_error_handler(RedisError, _engine_down)
    app.register_error_handler(Exception, _unexpected)


def body_of(message: str, code: str, details: Any = None, **facts: Any) -> dict[str, Any]:
    """The body of an error's answer."""
    body: dict[str, Any] = {"error": message, "code": code, **facts}
    return body if details is None else body | {"details": details}


def code_of_status(status: int) -> str:
    """The code of an error that werkzeug raised by itself."""
    return _CODES.get(status) or HTTPStatus(status).phrase.lower().replace(" ", "_")


def message_of_status(status: int) -> str:
    """The sentence of an error that werkzeug raised by itself."""
    return _MESSAGES.get(status) or HTTPStatus(status).phrase.lower()


def _answer(status: int, message: str, code: str, details: Any = None, **facts: Any) -> Response:
    response = jsonify(body_of(message, code, details, **facts))
    response.status_code = status
    if status == 401:
        response.headers["WWW-Authenticate"] = 'Bearer realm="coordinator", ApiKey header="X-Service-Key"'
    return response


def _expected(error: LotteryError) -> Response:
    status = status_of(error)
    if status == 500:
        return _unexpected(error)
    return _answer(status, error.message, error.code, error.details, **error.facts)


def _from_werkzeug(error: HTTPException) -> Response:
    status = error.code or 500
    if status >= 500 and isinstance(error, InternalServerError):
        return _unexpected(error.original_exception or error)
    response = _answer(status, message_of_status(status), code_of_status(status))
    allow = error.get_response().headers.get("Allow")
    if allow:
        response.headers["Allow"] = allow
    return response


def _cut_short(error: Exception) -> Response:
    # The web server reads a body sent in chunks while we ask for it, and only then finds that it is none.
    return _answer(400, "the body is not sent as its headers say", BadRequest.code)


def _engine_down(error: Exception) -> Response:
    log.error("engine down", extra={"error": type(error).__name__})
    return _answer(503, "the service cannot reach its database; try again shortly", Unavailable.code)


def _unexpected(error: BaseException) -> Response:
    log.error("unexpected error", exc_info=error)
    return _answer(500, "something went wrong on our side", "internal")
