"""Servers given by DATABASE_URL and REDIS_URL: a look before anything else starts.

One rule: a wrong or dead server is one clear line naming the variable, and no message ever shows a password.
"""

from __future__ import annotations

import contextlib
from urllib.parse import quote, quote_plus

import psycopg2
import redis
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from deploy.failure import EngineError

_CONNECT_SECONDS = 5
_DRIVERS = {"postgres", "postgresql", "postgresql+psycopg2"}


def check_database(text: str) -> None:
    """Connect once to the PostgreSQL that `text` names; EngineError says why not."""
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise EngineError("DATABASE_URL is not a URL: expected postgresql://user:password@host:5432/name") from None
    if url.drivername not in _DRIVERS:
        raise EngineError(f"DATABASE_URL is for {url.drivername}: the coordinator needs postgresql://")
    try:
        psycopg2.connect(_libpq(url), connect_timeout=_CONNECT_SECONDS).close()
    except (psycopg2.Error, UnicodeError) as error:
        shown = url.set(drivername="postgresql").render_as_string(hide_password=True)
        raise EngineError(f"DATABASE_URL: cannot use {shown}: {_one_line(error, url.password)}") from None


def check_redis(text: str) -> None:
    """Ping once the Redis that `text` names; EngineError says why not."""
    try:
        client = redis.Redis.from_url(text, socket_connect_timeout=_CONNECT_SECONDS, socket_timeout=_CONNECT_SECONDS)
    except (ValueError, TypeError):
        raise EngineError("REDIS_URL is not a URL: expected redis://:password@host:6379/0") from None
    settings = client.connection_pool.connection_kwargs
    shown = settings.get("path") or f"{settings.get('host', 'localhost')}:{settings.get('port', 6379)}"
    try:
        client.ping()
    except (redis.RedisError, OSError) as error:
        raise EngineError(f"REDIS_URL: cannot use {shown}: {_one_line(error, settings.get('password'))}") from None
    finally:
        client.close()


def refuse_unless_empty(database_url: str | None, redis_url: str | None) -> None:
    """For whoever would play in them: EngineError when a given server has anything in it already."""
    if database_url:
        check_database(database_url)
        connection = psycopg2.connect(_libpq(make_url(database_url)), connect_timeout=_CONNECT_SECONDS)
        with contextlib.closing(connection), connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
            )
            if cursor.fetchone() != (0,):
                raise EngineError("the database that DATABASE_URL names has tables in it: name an empty one, or none")
    if redis_url:
        check_redis(redis_url)
        with redis.Redis.from_url(redis_url) as client:
            if client.dbsize():
                raise EngineError("the Redis that REDIS_URL names has keys in it: name an empty one, or none")


def _libpq(url: URL) -> str:
    return url.set(drivername="postgresql").render_as_string(hide_password=False)


def _one_line(error: BaseException, password: object) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    if password:
        for form in {str(password), quote(str(password), safe=""), quote_plus(str(password))}:
            text = text.replace(form, "***")
    return text
