"""A node on a database of its own, in this process; and coordinators to talk to: the real one, and a stubborn one."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from flask.testing import FlaskClient

from tests.databases import fresh_database, made_once, moved_in
from tests.player.stubborn import Stubborn, stubborn_coordinator
from tests.served import served

if TYPE_CHECKING:
    from tests.player.coordinating import Side

OPERATOR_API_KEY = "sk_0011223344556677_" + "ab" * 32

ENVIRONMENT = {
    "COORDINATOR_URL": "http://127.0.0.1:9",
    "OPERATOR_API_KEY": OPERATOR_API_KEY,
    "PUBLIC_URL": "http://127.0.0.1:8100",
    "JWT_KEYS": "k1:" + "s" * 48,
    "PAYMENT_SECRET": "p" * 48,
    "SANDBOX": "1",
    "RATE_LIMITS": "off",
}


@pytest.fixture(scope="session")
def node_template() -> str:
    """The name of a database with every migration of a node applied."""
    return made_once("node", [sys.executable, "-m", "alembic", "-c", "player/alembic.ini", "upgrade", "head"])


@pytest.fixture
def node(node_template: str, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A node's code in this process, on an empty database of this test; its URL."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with fresh_database(node_template, "node") as url, _moved_in():
        yield url


@pytest.fixture
def beside(house: None) -> Iterator[Side]:
    """A coordinator with one funded operator, us, on a database of its own and on the wire."""
    from models import session, settings
    from tests.player.coordinating import Side, an_operator_with_a_key, coordinator_on_the_wire

    # Both remember whose they are, before the node's environment takes the place of theirs.
    settings.settings(), session.engine()
    with coordinator_on_the_wire() as url:
        yield Side(url, *an_operator_with_a_key())


@pytest.fixture
def side(beside: Side, node: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Side]:
    """A node in this process, and the coordinator that it works with."""
    monkeypatch.setenv("COORDINATOR_URL", beside.url)
    monkeypatch.setenv("OPERATOR_API_KEY", beside.api_key)
    from player.settings import settings
    from player.tasks.asking import coordinator

    settings.cache_clear()
    coordinator.cache_clear()
    yield beside
    coordinator().close()
    coordinator.cache_clear()


@pytest.fixture
def client(node: str) -> FlaskClient:
    """A client of the node's API."""
    from player.api.factory import create_app

    return create_app().test_client()


@pytest.fixture
def coordinator_url(house: None) -> Iterator[str]:
    """The address of the real coordinator's application, on this test's own database."""
    with served() as url:
        yield url


@pytest.fixture
def stubborn() -> Iterator[Stubborn]:
    """A coordinator that misbehaves on demand."""
    with stubborn_coordinator() as state:
        yield state


def _moved_in() -> contextlib.AbstractContextManager[None]:
    from player import settings
    from player.models import session

    return moved_in(session.engine, settings.settings)
