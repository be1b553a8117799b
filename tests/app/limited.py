"""Clients of an application whose limits are small, and what its answers say about them."""

from __future__ import annotations

from collections.abc import Callable

import redis
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

Make = Callable[..., FlaskClient]
"""The fixture ``app_with``."""

PUBLIC, OWN = "/api/public/jackpot", "/api/operator/me"


def new_key(name: str) -> str:
    """The API key of a new operator."""
    from models.credentials import issue_api_key
    from models.session import transaction
    from tests.factories import an_operator

    operator_id = an_operator(name)
    with transaction() as session:
        return issue_api_key(session, operator_id)


def ask(client: FlaskClient, path: str = PUBLIC, *, address: str = "192.0.2.1", **headers: str) -> TestResponse:
    """Read from an address, with headers (``X_Service_Key=…``)."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.get(path, headers=sent, environ_base={"REMOTE_ADDR": address})


def left(answer: TestResponse) -> tuple[int, int]:
    """The limit and what remains of it."""
    return int(answer.headers["X-RateLimit-Limit"]), int(answer.headers["X-RateLimit-Remaining"])


def counts(redis_url: str) -> list[str]:
    """Who is counted in Redis."""
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        return [str(name).split("/")[1] for name in client.scan_iter("LIMITS:*")]
