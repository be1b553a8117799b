"""One operator's node for the tests of the player API: its door, in this process, on a database of its own.

One rule: a test that changes anything does so to a player of its own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.contract.fields import ERROR
from tests.contract.shapes import assert_fields
from tests.databases import fresh_database, moved_in
from tests.player.conftest import ENVIRONMENT

PASSWORD = "a long enough password"
_numbers = count(1)


@dataclass(frozen=True)
class PlayerWorld:
    """A node that players talk to."""

    client: FlaskClient

    def call(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> TestResponse:
        sent = {} if body is None else {"json": body}
        return self.client.open(path, method=method, headers=headers, **sent)

    def refused(self, status: int, method: str, path: str, body: Any = None, headers: Any = None) -> dict[str, Any]:
        """The error of a request that is refused with this status."""
        answer = self.call(method, path, body, headers)
        assert answer.status_code == status, answer.text
        shown: dict[str, Any] = answer.json
        assert_fields({name: value for name, value in shown.items() if name != "details"}, ERROR)
        return shown

    def register(self) -> Person:
        """Somebody new."""
        form = {"email": f"contract{next(_numbers)}@example.com", "password": PASSWORD, "displayName": "Ana"}
        answer = self.call("POST", "/api/auth/register", form)
        assert answer.status_code == 201, answer.text
        return Person(self, form["email"], answer.json)


@dataclass(frozen=True)
class Person:
    """A player, as registering showed her."""

    world: PlayerWorld
    email: str
    shown: dict[str, Any] = field(repr=False)

    @property
    def id(self) -> int:
        return int(self.shown["player"]["id"])

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.shown['tokens']['accessToken']}"}

    def get(self, path: str, status: int = 200) -> Any:
        return self._read(self.world.call("GET", path, headers=self.headers), status)

    def post(self, path: str, body: Any = None, status: int = 200) -> Any:
        return self._read(self.world.call("POST", path, body, self.headers), status)

    def _read(self, answer: TestResponse, status: int) -> Any:
        assert answer.status_code == status, answer.text
        return answer.json


@contextlib.contextmanager
def player_world(node_template: str) -> Iterator[PlayerWorld]:
    """A node on a fresh database, for all tests of a module."""
    from player import settings
    from player.models import session

    with pytest.MonkeyPatch.context() as environment:
        for name, value in ENVIRONMENT.items():
            environment.setenv(name, value)
        with fresh_database(node_template, "contract_node"), moved_in(session.engine, settings.settings):
            from player.api.factory import create_app

            yield PlayerWorld(create_app().test_client())
