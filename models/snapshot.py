"""Has anything changed? One question to the database that costs a tenth of reading the answer again.

The one rule kept here: two equal snapshots see exactly the same rows. What was read between them, in whole
transactions, is what would be read now (docs/decisions/0005).
"""

from contextlib import closing
from functools import lru_cache

import psycopg2
from sqlalchemy import Engine, create_engine
from sqlalchemy.exc import SQLAlchemyError

from models.settings import settings


@lru_cache(maxsize=1)
def _engine(database_url: str) -> Engine:
    # Connections of their own: no transaction around the question and no ping before it, which would triple its price.
    return create_engine(
        database_url,
        isolation_level="AUTOCOMMIT",
        pool_size=2,
        max_overflow=settings().database_pool_size,
        pool_timeout=1,
        pool_reset_on_return=None,
        connect_args={"connect_timeout": 5, "application_name": "coordinator"},
    )


def current_snapshot() -> str | None:
    """Which transactions are visible now; None when the database does not say."""
    pool = _engine(settings().database_url)
    try:
        return _ask(pool)
    except (psycopg2.OperationalError, psycopg2.InterfaceError):
        # A connection of before a restart. Then all of them are: none is kept.
        pool.dispose()
    except SQLAlchemyError:
        return None
    try:
        return _ask(pool)
    except (psycopg2.Error, SQLAlchemyError):
        return None


def _ask(pool: Engine) -> str:
    # The driver itself: around so small a question everything else would take more time than the answer.
    connection = pool.raw_connection()
    try:
        with closing(connection.cursor()) as cursor:
            cursor.execute("SELECT pg_current_snapshot()::text")
            row = cursor.fetchone()
    except psycopg2.Error:
        connection.invalidate()
        raise
    connection.close()
    return str(row[0]) if row else ""
