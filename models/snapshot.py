"""Has anything changed? One question to the database that costs a tenth of reading the answer again.

The one rule kept here: two equal snapshots see exactly the same rows. What was read between them, in whole
transactions, is what would be read now (docs/decisions/0005).
"""

from functools import lru_cache
from typing import cast

from sqlalchemy import Engine, create_engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

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
    try:
        return _ask()
    except DBAPIError as error:
        # The connection was one of before a restart. Then all of them are, and the pool has thrown them away.
        if not error.connection_invalidated:
            return None
    except SQLAlchemyError:
        return None
    try:
        return _ask()
    except SQLAlchemyError:
        return None


def _ask() -> str:
    with _engine(settings().database_url).connect() as connection:
        return cast(str, connection.exec_driver_sql("SELECT pg_current_snapshot()::text").scalar_one())
