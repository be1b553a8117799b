"""Errors of the web server itself, before it reaches the application: JSON like all others, never HTML.

One rule: nothing of what was sent is sent back. What could not be read as HTTP is in gunicorn's log.
"""

from __future__ import annotations

import json
import socket

from gunicorn import util

_ERRORS = {
    400: ("bad_request", "the request is not HTTP as we read it"),
    403: ("forbidden", "the request was refused"),
    414: ("uri_too_long", "the address is too long"),
    417: ("expectation_failed", "only 100-continue may be expected"),
    431: ("headers_too_large", "the headers are too many or too large"),
    501: ("not_implemented", "the body is sent in a way we do not read"),
}
_OTHER = ("internal", "something went wrong on our side")


def install() -> None:
    """Let gunicorn answer with these. It has no setting for it: every kind of worker calls this function of its."""
    util.write_error = write_error


def write_error(connection: socket.socket, status: int, reason: str, message: str) -> None:
    """Answer with an error of the web server's own."""
    code, sentence = _ERRORS.get(status, _OTHER)
    body = json.dumps({"error": sentence, "code": code}, separators=(",", ":"))
    head = (
        f"HTTP/1.1 {status} {reason}",
        "Connection: close",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    )
    util.write_nonblock(connection, "\r\n".join((*head, "", body)).encode())
