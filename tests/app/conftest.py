"""The application under test: the real one, on this test's own database, spoken to as a client does.

Our own modules are imported inside the fixtures: this page may be read before the engines have started.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.app.ops import Shell


@pytest.fixture
def application(house: None) -> Flask:
    from app import create_app
    from tests.app.conformance import CheckedClient

    app = create_app()
    app.test_client_class = CheckedClient
    return app


@pytest.fixture
def app_with(house: None, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., FlaskClient]:
    """A client of an application with these settings; its rate limits are 3 and 5 an hour unless named."""
    from app import create_app
    from models.settings import settings

    def make(**changes: str) -> FlaskClient:
        small = {"RATE_LIMIT_PUBLIC": "3/hour", "RATE_LIMIT_AUTHENTICATED": "5/hour"}
        for name, value in (small | changes).items():
            monkeypatch.setenv(name, value)
        settings.cache_clear()
        return create_app().test_client()

    return make


@dataclass
class Caller:
    """Somebody with credentials (or none) and a client."""

    client: FlaskClient
    headers: dict[str, str]
    id: str = ""

    def get(self, path: str, **kwargs: Any) -> TestResponse:
        return self.client.get(path, headers=self.headers | kwargs.pop("headers", {}), **kwargs)

    def post(self, path: str, body: Any = None, **kwargs: Any) -> TestResponse:
        return self._send("POST", path, body, kwargs)

    def put(self, path: str, body: Any = None, **kwargs: Any) -> TestResponse:
        return self._send("PUT", path, body, kwargs)

    def patch(self, path: str, body: Any = None, **kwargs: Any) -> TestResponse:
        return self._send("PATCH", path, body, kwargs)

    def _send(self, method: str, path: str, body: Any, kwargs: dict[str, Any]) -> TestResponse:
        if body is not None:
            kwargs["json"] = body
        return self.client.open(path, method=method, headers=self.headers | kwargs.pop("headers", {}), **kwargs)


@pytest.fixture
def anybody(application: Flask) -> Caller:
    return Caller(application.test_client(), {})


@pytest.fixture
def operator(application: Flask) -> Callable[[str], Caller]:
    """An operator `op_<name>` with an API key."""

    from models.credentials import issue_api_key
    from models.session import transaction
    from tests.factories import an_operator

    def make(name: str = "a", funds: int = 10**12) -> Caller:
        operator_id = an_operator(name, funds)
        with transaction() as session:
            key = issue_api_key(session, operator_id)
        return Caller(application.test_client(), {"X-Service-Key": key}, operator_id)

    return make


@pytest.fixture
def admin(application: Flask) -> Callable[[str], Caller]:
    """An admin of a role."""

    from models.credentials import AdminRole, issue_admin_key
    from models.session import transaction

    def make(role: str = "root") -> Caller:
        with transaction() as session:
            _, key = issue_admin_key(session, role, AdminRole(role))
        return Caller(application.test_client(), {"X-Service-Admin-Key": key}, role)

    return make


@pytest.fixture
def shell(application: Flask) -> Shell:
    """The `flask ops` command line."""
    return Shell(application)


def assert_error(answer: TestResponse, status: int, code: str | None = None) -> dict[str, Any]:
    """An error as every error is: this status, JSON, a sentence and a code; returns the body."""
    assert answer.status_code == status, answer.text
    assert answer.is_json
    body: dict[str, Any] = answer.get_json()
    assert isinstance(body["error"], str)
    assert body["error"]
    assert isinstance(body["code"], str)
    assert "Traceback" not in answer.text
    if code is not None:
        assert body["code"] == code
    return body
