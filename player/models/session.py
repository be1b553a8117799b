"""The way to the database: one engine a process, one transaction a request or step.

The one rule kept here: all deadlines are judged by the database's clock, whichever process asks.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache

from sqlalchemy import Engine, create_engine, func, select
from sqlalchemy.orm import Session

from player.settings import settings


@lru_cache(maxsize=1)
def engine() -> Engine:
    """The engine of this process, made at first use: a forked child must never inherit a connection."""
    return create_engine(
        settings().database_url,
        pool_size=settings().database_pool_size,
        max_overflow=10,
        pool_pre_ping=True,
        # Whose data an unexpected error was about is nobody's business who reads the log.
        hide_parameters=True,
        connect_args={"connect_timeout": 5, "application_name": "player", "options": "-c timezone=UTC"},
    )


@contextmanager
def transaction() -> Iterator[Session]:
    """A session whose work is committed when the block ends and undone when it raises."""
    with Session(engine(), expire_on_commit=False) as session, session.begin():
        yield session


@contextmanager
def snapshot() -> Iterator[Session]:
    """A session that sees the database as it was at its first statement, for sums over several tables."""
    with transaction() as session:
        session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
        yield session


def database_now(session: Session) -> datetime:
    """The database's clock at this statement (UTC)."""
    now: datetime = session.scalars(select(func.clock_timestamp())).one()
    return now
