"""Databases for tests: a template with every migration applied, made once a run, and copies of it.

One rule: whatever is made here is dropped again, on our own server or on one that the environment names.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from psycopg2 import sql
from sqlalchemy import Engine
from sqlalchemy.engine import URL, make_url

from deploy.engines import EngineError

_TOP = Path(__file__).parent.parent
TEMPLATES = ("coordinator", "node")


def made_once(template: str, migrate: Sequence[str]) -> str:
    """The name of a database that the command ``migrate`` has made ready: by the first worker that needs it.

    ``template`` is one of TEMPLATES.
    """
    name = _template(template)
    with _session(_admin_url()) as cursor:
        # Held until this session ends: the other workers wait here, then find the work done.
        cursor.execute("SELECT pg_advisory_lock(hashtext(%s))", (name,))
        cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,))
        if cursor.fetchone() is None:
            unfinished = f"{name}_unfinished"
            cursor.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(unfinished)))
            _migrate(migrate, _url_of(unfinished))
            cursor.execute(
                sql.SQL("ALTER DATABASE {} RENAME TO {}").format(sql.Identifier(unfinished), sql.Identifier(name))
            )
    return name


def drop_templates() -> None:
    """Drop what this run made, at its end."""
    for template in TEMPLATES:
        _drop(_admin_url(), _template(template))


@contextlib.contextmanager
def fresh_database(template: str, kind: str) -> Iterator[str]:
    """The URL of a copy of a template, dropped at the end. DATABASE_URL names it meanwhile."""
    name = f"{kind}_{os.environ['TEST_RUN']}_{worker_number()}"
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
def moved_in(engine: Callable[[], Engine], *memories: Any) -> Iterator[None]:
    """What the code of this process remembers of another database (cached functions) is forgotten, before and after."""
    for memory in (engine, *memories):
        memory.cache_clear()  # type: ignore[attr-defined]
    yield
    engine().dispose()
    for memory in (engine, *memories):
        memory.cache_clear()  # type: ignore[attr-defined]


def worker_number() -> int:
    """Which of the processes that share this run of tests we are, from 0."""
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


def _migrate(command: Sequence[str], url: URL) -> None:
    environment = os.environ | {"DATABASE_URL": url.render_as_string(hide_password=False)}
    done = subprocess.run(command, cwd=_TOP, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise EngineError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")


def _template(template: str) -> str:
    return f"template_{template}_{os.environ['TEST_RUN']}"


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
