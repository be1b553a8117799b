"""The engines under the tests, and a database and a Redis of its own for every test that asks.

One rule: real servers, no sleeping, nothing shared. The servers start once per run (unless DATABASE_URL and
REDIS_URL name others: every database we make there is dropped again, but Redis databases 1 to n are
emptied, so never name one that anybody needs). Folders below add their own factories in their own
conftest.py.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator

import pytest
import redis
from hypothesis import settings as hypothesis_settings

from deploy.engines import EngineError, engines
from tests.databases import copied_database, drop_all, fresh_database, made_once, moved_in, worker_number
from tests.receiver import Receiver, receiving

_servers = contextlib.ExitStack()

# What every process of a test has unless it is given something else. Made up; they protect nothing.
SETTINGS = {
    "ENCRYPTION_KEYS": "dGVzdHMgb25seSwgbm90IGEgc2VjcmV0IGF0IGFsbCE=",
    "JWT_KEYS": "test:" + "for tests only " * 5,
    "SANDBOX": "1",
    # A test asks more in a second than a client in minutes. Tests of the limits set their own.
    "RATE_LIMIT_PUBLIC": "1000000/minute",
    "RATE_LIMIT_AUTHENTICATED": "1000000/minute",
}

# Failing examples print the line that replays them. HYPOTHESIS_SEED replays a whole run, or varies it.
hypothesis_settings.register_profile("ours", print_blob=True, deadline=None)
hypothesis_settings.load_profile("ours")


def pytest_configure(config: pytest.Config) -> None:
    if os.environ.get("PYTEST_XDIST_WORKER"):
        return  # The controller started the engines; we inherited the URLs.
    os.environ.update(SETTINGS)
    seed = os.environ.setdefault("HYPOTHESIS_SEED", str(int.from_bytes(os.urandom(4))))
    config.option.hypothesis_seed = config.option.hypothesis_seed or seed
    if config.option.collectonly:
        return
    try:
        servers = _servers.enter_context(engines())
    except EngineError as error:
        pytest.exit(str(error), returncode=2)
    os.environ.update(servers.environment)
    # One per run, so that runs sharing an outside server never meet.
    os.environ["TEST_RUN"] = str(os.getpid())


def pytest_unconfigure(config: pytest.Config) -> None:
    if not os.environ.get("PYTEST_XDIST_WORKER"):
        with contextlib.suppress(KeyError):
            drop_all()
        _servers.close()


def pytest_report_header(config: pytest.Config) -> str:
    return f"hypothesis seed: {os.environ['HYPOTHESIS_SEED']} (HYPOTHESIS_SEED=… replays it)"


@pytest.fixture(scope="session")
def template_database() -> str:
    """The name of a database with every migration applied: made by the first worker that needs it."""
    # Chores come due some minutes after the migrations: on a slow machine in the middle of the tests.
    never = "UPDATE chores SET due_at = due_at + interval '1 day'"
    return made_once("coordinator", [sys.executable, "-m", "alembic", "upgrade", "head"], never)


@pytest.fixture
def database(template_database: str) -> Iterator[str]:
    """The URL of a migrated, empty database for this test alone. DATABASE_URL names it meanwhile."""
    with fresh_database(template_database, "test") as url:
        yield url


@pytest.fixture(scope="module")
def shared_database(template_database: str) -> Iterator[str]:
    """The same for all tests of a module: for those that only read, or that must not be able to write."""
    with fresh_database(template_database, "shared") as url:
        yield url


@pytest.fixture
def copied() -> Callable[[str], contextlib.AbstractContextManager[str]]:
    """Makes a copy of a database that nobody is connected to, and gives its URL. DATABASE_URL names it meanwhile."""
    return lambda url: copied_database(url, "copy")


@pytest.fixture
def house(database: str) -> Iterator[None]:
    """Our own code, in this process, on this test's database. What it remembers of another one is forgotten."""
    with _moved_in():
        yield


@pytest.fixture(scope="module")
def shared_house(shared_database: str) -> Iterator[None]:
    """Our own code, in this process, on this module's database."""
    with _moved_in():
        yield


def _moved_in() -> contextlib.AbstractContextManager[None]:
    from models import encryption, session, settings

    return moved_in(session.engine, settings.settings, encryption._fernet)


@pytest.fixture
def redis_url(monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of an empty Redis database that no other test process uses. REDIS_URL names it meanwhile."""
    plain = os.environ["REDIS_URL"].partition("?")[0]
    url = f"{plain}?db={worker_number() + 1}"
    with redis.Redis.from_url(url) as client:
        client.flushdb()
    monkeypatch.setenv("REDIS_URL", url)
    return url


@pytest.fixture
def generous(house: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds are opened by rules with odds so good that every tier has winners."""
    from tests.factories import GENEROUS

    monkeypatch.setattr("tasks.opening.current_rules", lambda cumulative: GENEROUS)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """An operator's receiver on loopback."""
    with receiving() as state:
        yield state
