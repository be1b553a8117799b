"""Answers to public reads that are given again as long as nothing has changed.

The one rule kept here: no answer is older than the database. Every request asks whether anything was committed since
the answer was made, and only then takes it from memory (docs/decisions/0005). The one exception says so itself: a read
that is published as cacheable may be ``fresh_for`` seconds old.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

from flask import Flask, Response, g, request

from models.snapshot import current_snapshot

MOST_BYTES = 64 * 1024 * 1024
"""What a process keeps at the most."""
LARGEST_BYTES = 1024 * 1024
"""An answer larger than this is not kept."""


_OVERHEAD_BYTES = 1_000
"""What keeping an answer takes beside its body, roughly."""

_Key = tuple[str, bytes]
"""Path and query."""


@dataclass(frozen=True)
class _Kept:
    """An answer, what was visible when it was made, and until when nobody need ask."""

    snapshot: str
    fresh_until: float
    body: bytes
    etag: str


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


def cached(fresh_for: int = 0) -> Callable[[type], type]:
    """Mark a view: its GET depends on nothing but its path, its query and the database.

    ``fresh_for``: seconds for which an answer may be given without a look at the database, here and elsewhere.
    """

    def mark(view: type) -> type:
        setattr(view, _CACHED, fresh_for)
        return view

    return mark


def register(app: Flask) -> None:
    """Keep and give the answers of marked views. After the limiter: an answer from memory counts, too."""
    memory = _Memory(MOST_BYTES)
    app.before_request(lambda: _given_again(app, memory))
    app.after_request(lambda response: _kept(memory, response))


def _given_again(app: Flask, memory: _Memory) -> Response | None:
    view = getattr(app.view_functions.get(request.endpoint or ""), "view_class", None)
    fresh_for = getattr(view, _CACHED, None)
    if fresh_for is None or request.method not in ("GET", "HEAD"):
        return None
    kept = memory.get((request.path, request.query_string))
    if kept is not None and time.monotonic() < kept.fresh_until:
        return _answer(kept, fresh_for)
    snapshot = current_snapshot()
    if snapshot is None:
        return None
    if kept is not None and kept.snapshot == snapshot:
        return _answer(kept, fresh_for)
    g.to_keep = (snapshot, fresh_for)
    return None


def _answer(kept: _Kept, fresh_for: int) -> Response:
    return _labelled(Response(kept.body, content_type="application/json"), kept.etag, fresh_for)


def _labelled(response: Response, etag: str, fresh_for: int) -> Response:
    response.set_etag(etag)
    response.headers["Cache-Control"] = f"public, max-age={fresh_for}" if fresh_for else "public, no-cache"
    response.make_conditional(request)
    return response


def _kept(memory: _Memory, response: Response) -> Response:
    to_keep: tuple[str, int] | None = g.pop("to_keep", None)
    if to_keep is None or response.status_code != 200:
        return response
    snapshot, fresh_for = to_keep
    body = response.get_data()
    kept = _Kept(snapshot, time.monotonic() + fresh_for, body, sha256(body).hexdigest()[:32])
    if len(body) <= LARGEST_BYTES:
        memory.put((request.path, request.query_string), kept)
    return _labelled(response, kept.etag, fresh_for)
