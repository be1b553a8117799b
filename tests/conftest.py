"""The engines under the tests, and a database and a Redis of its own for every test that asks.

One rule: real servers, no sleeping, nothing shared. The servers start once per run (unless DATABASE_URL and
REDIS_URL name others: every database we make there is dropped again, but Redis databases 1 to n are
emptied, so never name one that anybody needs). Folders below add their own factories in their own
conftest.py.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg2
import pytest
import redis
from hypothesis import settings as hypothesis_settings
from psycopg2 import sql
from sqlalchemy.engine import URL, make_url

from deploy.engines import EngineError, engines
from tests.receiver import Receiver, receiving

TOP = Path(__file__).parent.parent
_TEMPLATE = "template_for_tests"
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
            _drop(_admin_url(), f"{_TEMPLATE}_{os.environ['TEST_RUN']}")
        _servers.close()


def pytest_report_header(config: pytest.Config) -> str:
    return f"hypothesis seed: {os.environ['HYPOTHESIS_SEED']} (HYPOTHESIS_SEED=… replays it)"


@pytest.fixture(scope="session")
def template_database() -> str:
    """The name of a database with every migration applied: made by the first worker that needs it."""
    name = f"{_TEMPLATE}_{os.environ['TEST_RUN']}"
    with _session(_admin_url()) as cursor:
        # Held until this session ends: the other workers wait here, then find the work done.
        cursor.execute("SELECT pg_advisory_lock(hashtext(%s))", (name,))
        cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,))
        if cursor.fetchone() is None:
            unfinished = f"{name}_unfinished"
            cursor.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(unfinished)))
            _migrate(_url_of(unfinished))
            cursor.execute(
                sql.SQL("ALTER DATABASE {} RENAME TO {}").format(sql.Identifier(unfinished), sql.Identifier(name))
            )
    return name


@pytest.fixture
def database(template_database: str) -> Iterator[str]:
    """The URL of a migrated, empty database for this test alone. DATABASE_URL names it meanwhile."""
    with _new_database(template_database, "test") as url:
        yield url


@pytest.fixture(scope="module")
def shared_database(template_database: str) -> Iterator[str]:
    """The same for all tests of a module: for those that only read, or that must not be able to write."""
    with _new_database(template_database, "shared") as url:
        yield url


@pytest.fixture
def copied() -> Callable[[str], contextlib.AbstractContextManager[str]]:
    """Makes a copy of a database that nobody is connected to, and gives its URL. DATABASE_URL names it meanwhile."""
    return lambda url: _new_database(str(make_url(url).database), "copy")


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


@contextlib.contextmanager
def _new_database(template: str, kind: str) -> Iterator[str]:
    name = f"{kind}_{os.environ['TEST_RUN']}_{_worker_number()}"
    admin = _admin_url()
    _drop(admin, name)
    with _session(admin) as cursor:
        # Copied as files: a fifth less time than through the log, thousands of times over.
        create = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY")
        cursor.execute(create.format(sql.Identifier(name), sql.Identifier(template)))
    url = _url_of(name).render_as_string(hide_password=False)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("DATABASE_URL", url)
        yield url
    _drop(admin, name)


@contextlib.contextmanager
def _moved_in() -> Iterator[None]:
    from models import encryption, session, settings

    memories = (settings.settings, session.engine, encryption._fernet)
    for memory in memories:
        memory.cache_clear()
    yield
    session.engine().dispose()
    for memory in memories:
        memory.cache_clear()


@pytest.fixture
def redis_url(monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of an empty Redis database that no other test process uses. REDIS_URL names it meanwhile."""
    plain = os.environ["REDIS_URL"].partition("?")[0]
    url = f"{plain}?db={_worker_number() + 1}"
    with redis.Redis.from_url(url) as client:
        client.flushdb()
    monkeypatch.setenv("REDIS_URL", url)
    return url


def _migrate(url: URL) -> None:
    environment = os.environ | {"DATABASE_URL": url.render_as_string(hide_password=False)}
    done = subprocess.run(
        [sys.executable, "-m", "alembic", "upgrade", "head"],
        cwd=TOP, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise EngineError(f"alembic upgrade head failed:\n{done.stdout}{done.stderr}")


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


def _worker_number() -> int:
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


def _admin_url() -> URL:
    return make_url(os.environ["DATABASE_URL"]).set(drivername="postgresql")


def _url_of(database: str) -> URL:
    return make_url(os.environ["DATABASE_URL"]).set(drivername="postgresql+psycopg2", database=database)


def _drop(admin: URL, name: str) -> None:
    with _session(admin) as cursor:
        cursor.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


@contextlib.contextmanager
def _session(url: URL) -> Iterator[psycopg2.extensions.cursor]:
    """One connection outside any transaction, as CREATE DATABASE demands."""
    connection = psycopg2.connect(url.render_as_string(hide_password=False))
    try:
        connection.autocommit = True
        with connection.cursor() as cursor:
            yield cursor
    finally:
        connection.close()
