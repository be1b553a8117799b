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
from tests.emptying import Picture, emptied, picture

_TOP = Path(__file__).parent.parent
_used: dict[str, tuple[psycopg2.extensions.connection, Picture]] = {}
"""The databases of this process, as they were when they were new, each with a session that knows its tables already."""


def made_once(template: str, migrate: Sequence[str], then: str = "SELECT 1") -> str:
    """The name of a database that the command ``migrate`` and the statement ``then`` have made ready: by the first
    worker that needs it.
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
            with _session(_plain_url_of(unfinished)) as new:
                new.execute(then)
            cursor.execute(
                sql.SQL("ALTER DATABASE {} RENAME TO {}").format(sql.Identifier(unfinished), sql.Identifier(name))
            )
    return name


def drop_all() -> None:
    """Drop what this run made, at its end."""
    with _session(_admin_url()) as cursor:
        for name in list(_used):
            _forget(name)
        cursor.execute("SELECT datname FROM pg_database WHERE datname ~ %s", (f"_{os.environ['TEST_RUN']}(_|$)",))
        for (name,) in cursor.fetchall():
            _drop(cursor, name)


@contextlib.contextmanager
def fresh_database(template: str, kind: str) -> Iterator[str]:
    """The URL of a database that is as the template is. DATABASE_URL names it meanwhile.

    It is the one that was given before under the same ``kind``, emptied (``tests.emptying``), unless that cannot be
    done: a copy takes three times as long, and there are more than a thousand tests.
    """
    name = _name(kind)
    if not _emptied(name):
        with _session(_admin_url()) as cursor:
            _copy(cursor, template, name)
        session = _connect(_plain_url_of(name))
        with session.cursor() as cursor:
            _used[name] = session, picture(cursor)
    with _named(name) as url:
        yield url


@contextlib.contextmanager
def copied_database(url: str, kind: str) -> Iterator[str]:
    """The URL of a copy of a database that nobody is connected to. DATABASE_URL names it meanwhile."""
    original = str(make_url(url).database)
    _forget(original)
    with _session(_admin_url()) as cursor:
        _copy(cursor, original, _name(kind))
    with _named(_name(kind)) as copy:
        yield copy


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


def _plain_url_of(database: str) -> URL:
    return _admin_url().set(database=database)


def _url_of(database: str) -> URL:
    return make_url(os.environ["DATABASE_URL"]).set(drivername="postgresql+psycopg2", database=database)


def _name(kind: str) -> str:
    return f"{kind}_{os.environ['TEST_RUN']}_{worker_number()}"


@contextlib.contextmanager
def _named(name: str) -> Iterator[str]:
    url = _url_of(name).render_as_string(hide_password=False)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("DATABASE_URL", url)
        yield url


def _emptied(name: str) -> bool:
    if name not in _used:
        return False
    session, before = _used[name]
    with contextlib.suppress(psycopg2.Error), session.cursor() as cursor:
        if emptied(cursor, before):
            return True
    _forget(name)  # Whatever it is that cannot be put right, a copy is.
    return False


def _forget(name: str) -> None:
    if name in _used:
        _used.pop(name)[0].close()


def _copy(cursor: psycopg2.extensions.cursor, template: str, name: str) -> None:
    _drop(cursor, name)
    # Copied as files: a fifth less time than through the log.
    create = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY")
    cursor.execute(create.format(sql.Identifier(name), sql.Identifier(template)))


def _drop(cursor: psycopg2.extensions.cursor, name: str) -> None:
    cursor.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


@contextlib.contextmanager
def _session(url: URL) -> Iterator[psycopg2.extensions.cursor]:
    with contextlib.closing(_connect(url)) as connection, connection.cursor() as cursor:
        yield cursor


def _connect(url: URL) -> psycopg2.extensions.connection:
    """A connection outside any transaction, as CREATE DATABASE demands."""
    connection = psycopg2.connect(url.render_as_string(hide_password=False))
    connection.autocommit = True
    return connection
