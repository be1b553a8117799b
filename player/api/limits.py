"""Rate limits (interface section 8, the player API's table): how often a client may ask.

The one rule kept here: what is limited by player is counted against the player behind the token, the rest against the
address it came from. Counts are in Redis, for all web processes; while it is down each process counts by itself.
"""

import logging
import re
import time
from ipaddress import IPv4Address, IPv6Address, ip_address
from math import ceil

from flask import Flask, Response, g, request
from flask_limiter import Limiter
from redis.backoff import NoBackoff
from redis.retry import Retry
from werkzeug.middleware.proxy_fix import ProxyFix

from player.api.limit_counts import COUNTING
from player.settings import settings

REGISTER_AND_LOGIN = "5/minute"
REFRESH = "20/minute"
PLAYER_READS = "60/minute"
PLAYER_WRITES = "20/minute"
PURCHASES = "10/minute"
ADMIN = "30/minute"
PASSWORDS = "5/minute"
"""Ours: setting a password by the old one or by a token, and asking for a token. Each has a budget of its own, so that
who forgot her password is not kept from logging in."""
OTHERS = "60/minute"
"""What the published table does not name: by address, as the coordinator's public paths."""

_BY_PATH = {
    "/api/auth/register": ("login", REGISTER_AND_LOGIN),
    "/api/auth/login": ("login", REGISTER_AND_LOGIN),
    "/api/auth/refresh": ("refresh", REFRESH),
    "/api/auth/password": ("password", PASSWORDS),
    "/api/auth/password/reset": ("password-reset", PASSWORDS),
    "/api/auth/password/forgot": ("password-forgot", PASSWORDS),
    "/api/player/tickets/purchase": ("purchase", PURCHASES),
}
PATIENCE_SECONDS = 0.25
"""Redis answers within a millisecond or is treated as down."""
_UNCOUNTED = ("/health", "/webhooks/", "/api/payments/callback")


def register(app: Flask) -> None:
    """Count every request of the application and tell what is left in the three headers. Register the guards first."""
    logging.getLogger("flask-limiter").setLevel(logging.WARNING)
    limiter = Limiter(
        # All budgets have one scope to the limiter: the name keeps two of one size apart.
        lambda: f"{_budget()[0]}:{_client()}",
        application_limits=[_limit],
        # Unknown paths have no endpoint, and the limiter would let them pass uncounted.
        request_identifier=lambda: "any",
        storage_uri=COUNTING + settings().redis_url,
        storage_options={
            "socket_connect_timeout": PATIENCE_SECONDS,  # type: ignore[dict-item]
            "socket_timeout": PATIENCE_SECONDS,  # type: ignore[dict-item]
            # The client's own default is three more tries with pauses of seconds.
            "retry": Retry(NoBackoff(), 0),  # type: ignore[dict-item]
        },
        in_memory_fallback_enabled=True,
        strategy="fixed-window",
        # The limiter's own headers would put Retry-After on every answer.
        headers_enabled=False,
        enabled=settings().rate_limits,
    )
    limiter.request_filter(lambda: request.path.startswith(_UNCOUNTED))
    limiter.init_app(app)

    @app.after_request
    def announce(response: Response) -> Response:
        counted = limiter.current_limit
        if counted is not None:
            end, remaining = counted.window
            response.headers["X-RateLimit-Limit"] = str(counted.limit.amount)
            response.headers["X-RateLimit-Remaining"] = str(remaining)
            response.headers["X-RateLimit-Reset"] = str(ceil(end))
            if counted.breached:
                response.headers["Retry-After"] = str(max(1, ceil(end - time.time())))
        return response

    if settings().trusted_hops:
        app.wsgi_app = ProxyFix(app.wsgi_app, x_for=settings().trusted_hops, x_proto=0)  # type: ignore[method-assign]


def _budget() -> tuple[str, str]:
    """The name of the budget a request is taken from, and its size."""
    path, reads = request.path.rstrip("/"), request.method in ("GET", "HEAD", "OPTIONS")
    if path in _BY_PATH:
        return _BY_PATH[path]
    if path.startswith("/api/player/"):
        return ("player-reads", PLAYER_READS) if reads else ("player-writes", PLAYER_WRITES)
    return ("admin", ADMIN) if path.startswith("/api/admin/") else ("others", OTHERS)


def _limit() -> str:
    return _budget()[1]


def _client() -> str:
    """Who is counted: the player or the staff key that the credentials were found to be, or else the address."""
    known = g.get("counted_as")
    return str(known) if known else f"ip:{network(request.remote_addr)}"


def network(address: str | None) -> str:
    """An IPv4 address as itself, an IPv6 address as its /64, which is one customer's. Some proxies name the client's
    port too, which is not part of who it is.
    """
    given = address or ""
    with_port = re.fullmatch(r"(?:\[([0-9a-fA-F:.]+)\]|([0-9.]+))(?::[0-9]+)?", given)
    try:
        parsed = ip_address(with_port[1] or with_port[2] if with_port else given)
    except ValueError:
        return "unknown"
    if isinstance(parsed, IPv4Address):
        return str(parsed)
    return str(parsed.ipv4_mapped or f"{IPv6Address(int(parsed) >> 64 << 64)}/64")
