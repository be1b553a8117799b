"""Answers to public reads that are given again as long as nothing has changed.

The one rule kept here: no answer is older than the database. Every request asks whether anything was committed since
the answer was made, and only then takes it from memory (docs/decisions/0005). The one exception says so itself: a read
that is published as cacheable may be ``fresh_for`` seconds old.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from flask import Flask, Response, current_app, request
from werkzeug.http import parse_etags

from app.limits import CountPublic
from models.snapshot import current_snapshot

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

MOST_BYTES = 64 * 1024 * 1024
"""What a process keeps at the most."""
LARGEST_BYTES = 1024 * 1024
"""An answer larger than this is not kept."""


_OVERHEAD_BYTES = 1_000
"""What keeping an answer takes beside its body, roughly."""

_Key = tuple[str, str]
"""Path and query."""

_OF_A_BODY = ("Content-Type", "Content-Length")


@dataclass(frozen=True)
class _Kept:
    """An answer (200), what was visible when it was made, and until when nobody need ask."""

    snapshot: str
    fresh_until: float
    fresh_for: int
    body: bytes
    headers: tuple[tuple[str, str], ...]

    @property
    def etag(self) -> str:
        """Without its quotation marks."""
        return next(value for name, value in self.headers if name == "ETag").strip('"')


class _Memory:
    """The answers used last, up to a number of bytes."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._kept: OrderedDict[_Key, _Kept] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: _Key) -> _Kept | None:
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
            return kept

    def put(self, key: _Key, kept: _Kept) -> None:
        with self._lock:
            self._forget(key)
            self._kept[key] = kept
            self._bytes += _weight(kept)
            while self._bytes > self._most_bytes:
                self._forget(next(iter(self._kept)))

    def _forget(self, key: _Key) -> None:
        old = self._kept.pop(key, None)
        if old is not None:
            self._bytes -= _weight(old)


def _weight(kept: _Kept) -> int:
    return len(kept.body) + _OVERHEAD_BYTES


_CACHED = "_cached_read"
_TO_KEEP = "coordinator.to_keep"
_ASKED = "coordinator.snapshot"


def cached(fresh_for: int = 0) -> Callable[[type], type]:
    """Mark a view: its GET depends on nothing but its path, its query and the database.

    ``fresh_for``: seconds for which an answer may be given without a look at the database, here and elsewhere.
    """

    def mark(view: type) -> type:
        setattr(view, _CACHED, fresh_for)
        return view

    return mark


def freshness(view: object) -> int | None:
    """For how many seconds a view's answers may be given without a look; None if the view is not marked."""
    fresh_for: int | None = getattr(view, _CACHED, None)
    return fresh_for


def register(app: Flask, count: CountPublic) -> None:
    """Keep the answers of marked views, and give them again before the application sees the request."""
    app.before_request(_note_snapshot)
    app.after_request(_label)
    app.wsgi_app = _FromMemory(app.wsgi_app, count)  # type: ignore[method-assign]


def _note_snapshot() -> None:
    view = getattr(current_app.view_functions.get(request.endpoint or ""), "view_class", None)
    fresh_for = freshness(view)
    if fresh_for is not None and request.method in ("GET", "HEAD"):
        snapshot = request.environ[_ASKED] if _ASKED in request.environ else current_snapshot()
        if snapshot is not None:
            request.environ[_TO_KEEP] = (snapshot, fresh_for)


def _label(response: Response) -> Response:
    to_keep: tuple[str, int] | None = request.environ.get(_TO_KEEP)
    if to_keep is None or response.status_code != 200:
        request.environ.pop(_TO_KEEP, None)
        return response
    fresh_for = to_keep[1]
    response.set_etag(sha256(response.get_data()).hexdigest()[:32])
    response.headers["Cache-Control"] = f"public, max-age={fresh_for}" if fresh_for else "public, no-cache"
    return response


class _FromMemory:
    """The outermost part: what is in memory needs nothing of the application but the count of its limits."""

    def __init__(self, application: WSGIApplication, count: CountPublic) -> None:
        self._application = application
        self._count = count
        self._memory = _Memory(MOST_BYTES)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        key = (environ.get("PATH_INFO", ""), environ.get("QUERY_STRING", ""))
        kept = self._memory.get(key) if environ["REQUEST_METHOD"] in ("GET", "HEAD") else None
        # Counted first: a client that has used up its budget does not get as far as the database.
        counted = self._count(environ) if kept is not None else None
        if kept is not None and counted is not None and self._still_true(key, kept, environ):
            return _give(kept, counted, environ, start_response)
        return self._ask(key, environ, start_response)

    def _still_true(self, key: _Key, kept: _Kept, environ: WSGIEnvironment) -> bool:
        if time.monotonic() < kept.fresh_until:
            return True
        environ[_ASKED] = current_snapshot()
        if environ[_ASKED] != kept.snapshot:
            return False
        if kept.fresh_for:
            self._memory.put(key, replace(kept, fresh_until=time.monotonic() + kept.fresh_for))
        return True

    def _ask(self, key: _Key, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        begun: list[tuple[str, list[tuple[str, str]]]] = []

        def begin(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Callable[[bytes], object]:
            if _TO_KEEP not in environ:
                return start_response(status, headers, exc_info)
            begun.append((status, headers))
            return lambda _: None

        body = self._application(environ, begin)
        if not begun:
            return body
        try:
            whole = b"".join(body)
        finally:
            # The application's own end of the request hangs on this.
            if hasattr(body, "close"):
                body.close()
        counted = [header for header in begun[0][1] if header[0].startswith("X-RateLimit-")]
        headers = tuple(header for header in begun[0][1] if header not in counted)
        snapshot, fresh_for = environ[_TO_KEEP]
        kept = _Kept(snapshot, time.monotonic() + fresh_for, fresh_for, whole, headers)
        if environ["REQUEST_METHOD"] == "GET" and len(whole) <= LARGEST_BYTES:
            self._memory.put(key, kept)
        return _give(kept, counted, environ, start_response)


def _give(
    kept: _Kept, counted: list[tuple[str, str]], environ: WSGIEnvironment, start_response: StartResponse
) -> Iterable[bytes]:
    known = environ.get("HTTP_IF_NONE_MATCH")
    if known is not None and parse_etags(known).contains_weak(kept.etag):
        start_response("304 NOT MODIFIED", [h for h in kept.headers if h[0] not in _OF_A_BODY] + counted)
        return []
    start_response("200 OK", [*kept.headers, *counted])
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [kept.body]
