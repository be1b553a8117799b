"""Rate limits: how many requests a client may send, and the three headers that tell it (interface section 8).

The one rule kept here: a request is counted before its work is done, against the key that its credentials were found
to be, or else against the address it came from. Paths that ask for no credentials look at none.

The counts are in Redis, one budget for all web processes. When Redis is down requests go on, each process counts in
its own memory, and Redis is asked again after pauses of 1, 2, 4 … 32 seconds.
"""

import logging
import re
import time
from collections.abc import Callable
from functools import lru_cache, partial
from ipaddress import IPv4Address, IPv6Address, ip_address
from math import ceil
from typing import Any

from flask import Flask, Response, g, request
from flask_limiter import Limiter
from limits import parse
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry
from werkzeug.middleware.proxy_fix import ProxyFix

from app.credentials import ask_guards
from app.limit_counts import COUNTING
from models.settings import settings

CountPublic = Callable[[dict[str, Any]], list[tuple[str, str]] | None]
"""Counts a request (its WSGI environment) against its address, and gives the three headers of its answer.

Should the request get to the application after all, it is not counted again. None: it is not counted, the application
has to see it, because it is one too many or because Redis does not answer.
"""

_COUNTED = "coordinator.counted"

# What the limiter calls the scope of a limit that all paths share.
_SCOPE = "global"

_WITH_PORT = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([0-9.]+))(?::[0-9]+)?")

_UNCOUNTED = {"health.Health", "health.Ready"}

# Redis answers within a millisecond or is treated as down. No request waits for it longer than this, once a pause.
_PATIENCE_SECONDS = 0.25


def register(app: Flask) -> CountPublic:
    """Count every request of the application, and say on every answer what is left.

    Returns what counts those that never get as far as the application.
    """
    # The limiter notes every refusal at INFO, with the client's address; a flood would be one of log lines, too.
    logging.getLogger("flask-limiter").setLevel(logging.WARNING)
    limiter = Limiter(
        _client,
        application_limits=[_limit],
        # Unknown paths have no endpoint, and the limiter would let them pass uncounted.
        request_identifier=lambda: "any",
        storage_uri=COUNTING + settings().redis_url,
        storage_options={
            "socket_connect_timeout": _PATIENCE_SECONDS,  # type: ignore[dict-item]
            "socket_timeout": _PATIENCE_SECONDS,  # type: ignore[dict-item]
            # The client's own default is three more tries with pauses of seconds.
            "retry": Retry(NoBackoff(), 0),  # type: ignore[dict-item]
        },
        in_memory_fallback_enabled=True,
        # A window that begins with its first request and ends at a moment that X-RateLimit-Reset can name.
        strategy="fixed-window",
        # The limiter's own headers would put Retry-After on every answer.
        headers_enabled=False,
    )
    limiter.request_filter(_is_uncounted)
    # In this order: who asks, then counting. The guards of the blueprints follow and refuse whom they did not know.
    app.before_request(ask_guards)
    limiter.init_app(app)
    app.after_request(partial(_announce, limiter))
    return _public_counter(limiter)


def trust_proxies(app: Flask) -> None:
    """Take the client's address from so many trusted hops, for all that is inside of this."""
    hops = settings().trusted_hops
    if hops:
        app.wsgi_app = ProxyFix(app.wsgi_app, x_for=hops, x_proto=0)  # type: ignore[method-assign]


def _public_counter(limiter: Limiter) -> CountPublic:
    limit, in_redis = parse(settings().rate_limit_public), limiter.limiter

    def count(environ: dict[str, Any]) -> list[tuple[str, str]] | None:
        # While Redis is down the limiter itself has to see the requests: it is what asks Redis again.
        if limiter.limiter is not in_redis:
            return None
        key = limit.key_for(f"ip:{client_network(environ.get('REMOTE_ADDR'))}", _SCOPE)
        try:
            counted = in_redis.storage.incr(key, limit.get_expiry())
        except RedisError:
            return None
        if counted > limit.amount:
            return None
        end = ceil(in_redis.storage.get_expiry(key))
        headers = environ[_COUNTED] = _headers(limit.amount, limit.amount - counted, end)
        return headers

    return count


def counts(endpoint: str | None) -> bool:
    """Whether requests to an endpoint are counted."""
    return endpoint not in _UNCOUNTED


def _is_uncounted() -> bool:
    return not counts(request.endpoint) or _COUNTED in request.environ


def _client() -> str:
    """Who is counted."""
    return g.get("verified_key") or f"ip:{client_network(request.remote_addr)}"


def _limit() -> str:
    """How much they may do."""
    return settings().rate_limit_authenticated if "verified_key" in g else settings().rate_limit_public


@lru_cache(maxsize=10_000)
def client_network(address: str | None) -> str:
    """What an address is counted as: an IPv4 address as itself, an IPv6 address as its /64, which is one customer's.
    Some proxies name the client's port too, which is not part of who it is.
    """
    given = address or ""
    with_port = _WITH_PORT.fullmatch(given)
    try:
        parsed: IPv4Address | IPv6Address = ip_address(with_port[1] or with_port[2] if with_port else given)
    except ValueError:
        # A Unix socket has none, and a proxy may write anything. They share one budget: a made-up name gains nothing.
        return "unknown"
    if isinstance(parsed, IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return f"{IPv6Address(int(parsed) >> 64 << 64)}/64"


def _announce(limiter: Limiter, response: Response) -> Response:
    if _COUNTED in request.environ:
        response.headers.extend(request.environ[_COUNTED])
        return response
    now = time.time()
    counted = limiter.current_limit
    if counted is None:
        # Health, or the database failed while it was asked who this is: nothing was taken from the budget.
        whole = parse(settings().rate_limit_public)
        amount, remaining, reset = whole.amount, whole.amount, int(now) + whole.get_expiry()
    else:
        amount, (end, remaining) = counted.limit.amount, counted.window
        reset = ceil(end)
        if counted.breached:
            response.headers["Retry-After"] = str(max(1, reset - int(now)))
    response.headers.extend(_headers(amount, remaining, reset))
    return response


def _headers(amount: int, remaining: int, reset: int) -> list[tuple[str, str]]:
    shown = max(0, reset - int(time.time())) if settings().rate_limit_reset == "seconds" else reset
    return [
        ("X-RateLimit-Limit", str(amount)),
        ("X-RateLimit-Remaining", str(remaining)),
        ("X-RateLimit-Reset", str(shown)),
    ]
