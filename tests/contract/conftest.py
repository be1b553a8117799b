"""One coordinator for all tests of the contract that a test process runs: started, and played in, once.

One rule: a test that changes anything does so to a round, an operator or an application of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import count

import psycopg2
import pytest
from psycopg2 import sql
from sqlalchemy.engine import make_url

from deploy.coordinator import coordinator
from deploy.data_folder import throw_away
from deploy.sandbox import admin_key
from tests.contract.playing import play
from tests.contract.receiver import Receiver
from tests.contract.world import Party, World

# Not what is under test here, and every request comes from one address. The limits have tests of their own.
UNLIMITED = {"RATE_LIMIT_PUBLIC": "1000000/minute", "RATE_LIMIT_AUTHENTICATED": "1000000/minute"}
SIZE = {"WEB_CONCURRENCY": "1", "WORKER_PROCESSES": "1", "WORKER_THREADS": "8"}
# Shorter than the published ones, so that the tests can look at what follows.
PATIENCE = {"WEBHOOK_BASE_SECONDS": "0.3", "WEBHOOK_TIMEOUT_SECONDS": "2"}

_companies = count(1)


@pytest.fixture(scope="session")
def contract_database(template_database: str) -> Iterator[str]:
    """The URL of a migrated, empty database for all of this process's tests of the contract."""
    server = make_url(os.environ["DATABASE_URL"]).set(drivername="postgresql")
    name = f"contract_{os.environ['TEST_RUN']}_{os.environ.get('PYTEST_XDIST_WORKER', 'gw0')}"
    connection = psycopg2.connect(server.render_as_string(hide_password=False))
    connection.autocommit = True
    drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
    with connection.cursor() as cursor:
        cursor.execute(drop)
        cursor.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template_database))
        )
        yield server.set(database=name).render_as_string(hide_password=False)
        cursor.execute(drop)
    connection.close()


@pytest.fixture(scope="session")
def world(contract_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The running coordinator with its played rounds. Its Redis is its own: other tests empty theirs."""
    environ = {name: value for name, value in os.environ.items() if name != "REDIS_URL"}
    environ |= {"DATABASE_URL": contract_database, **UNLIMITED, **SIZE, **PATIENCE}
    logs = tmp_path_factory.mktemp("contract")
    with (
        Receiver() as receiver,
        throw_away() as folder,
        coordinator(folder, log_dir=logs, environ=environ) as running,
    ):
        played = World(running.base_url, running.env, admin_key(running, "contract"), receiver)
        play(played)
        yield played


@pytest.fixture
def alba(world: World) -> Party:
    """An operator of the played rounds. Look, but do not change it."""
    return world.parties["alba"]


@pytest.fixture
def company() -> str:
    """The name of a company that nobody has heard of yet."""
    return f"company{next(_companies)}"


@pytest.fixture
def newcomer(world: World, company: str) -> Party:
    """An operator of this test alone."""
    return world.approve(company)


@pytest.fixture
def fresh_round(world: World, newcomer: Party) -> Callable[[], int]:
    """Opens a round for the newcomer of this test."""
    return lambda: world.open_round([newcomer])
