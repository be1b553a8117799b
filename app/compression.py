"""Proofs, packed for those who can unpack them: hashes in hex take twice the bytes that they are.

The one rule kept here: only what anybody may read is packed. How well a text packs tells something of it, which must
not be a secret.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from flask import Flask
from werkzeug.http import parse_accept_header

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

PUBLIC = "/api/public/"
PACKED = ("/proof", "/absence")
"""How the paths end. Other reads are small, or asked for so often that packing would cost more than it saves."""
SMALLEST_BYTES = 512
"""An answer smaller than this is sent as it is: it fits into a packet anyway."""
LARGEST_BYTES = 1024 * 1024
"""One larger than this too: nobody else is to wait while it is packed."""
LEVEL = 6


def register(app: Flask) -> None:
    """Pack answers on their way out, those from memory as well."""
    app.wsgi_app = _Packing(app.wsgi_app)  # type: ignore[method-assign]


class _Packing:
    """Around the application."""

    def __init__(self, application: WSGIApplication) -> None:
        self._application = application

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if environ["REQUEST_METHOD"] != "GET" or not (path.startswith(PUBLIC) and path.endswith(PACKED)):
            return self._application(environ, start_response)
        packs = parse_accept_header(environ.get("HTTP_ACCEPT_ENCODING")).quality("gzip") > 0
        begun: list[tuple[str, list[tuple[str, str]]]] = []

        def begin(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Callable[[bytes], object]:
            if not _may_be_packed(status, headers):
                return start_response(status, headers, exc_info)
            headers = [*headers, ("Vary", "Accept-Encoding")]
            if not packs:
                return start_response(status, headers, exc_info)
            begun.append((status, headers))
            return lambda _: None

        body = self._application(environ, begin)
        if not begun:
            return body
        try:
            packed = gzip.compress(b"".join(body), LEVEL, mtime=0)
        finally:
            if hasattr(body, "close"):
                body.close()
        status, headers = begun[0]
        start_response(status, [*_of_packed(headers), ("Content-Length", str(len(packed)))])
        return [packed]


def _may_be_packed(status: str, headers: list[tuple[str, str]]) -> bool:
    said = {name.lower(): value for name, value in headers}
    length = int(said.get("content-length", 0))
    return (
        status.startswith("200")
        and said.get("content-type") == "application/json"
        and "content-encoding" not in said
        and SMALLEST_BYTES <= length <= LARGEST_BYTES
    )


def _of_packed(headers: list[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    """The headers without the length, and with an ETag that promises the same content, not the same bytes."""
    for name, value in headers:
        if name.lower() == "etag" and not value.startswith("W/"):
            yield name, f"W/{value}"
        elif name.lower() != "content-length":
            yield name, value
    yield "Content-Encoding", "gzip"
