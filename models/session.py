"""The one door to the database: an engine a process, and ``transaction()``.

The one rule kept here: one request or one actor step is one transaction, opened and committed at the edge, and no
session is open while we talk to anybody over a network.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache

from sqlalchemy import Engine, create_engine, func, select
from sqlalchemy.orm import Session

from models.settings import settings

# A worker whose machine vanished must not hold its row locks until the kernel's two hours are over. Ours tell us of a
# server that vanished; that we have, only the server's own can tell it.
_SERVERS_KEEPALIVES = "-c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3"


@lru_cache(maxsize=1)
def engine() -> Engine:
    """The engine of this process, made at first use: a forked child must never inherit a connection."""
    return create_engine(
        settings().database_url,
        pool_size=settings().database_pool_size,
        max_overflow=10,
        pool_pre_ping=True,
        # An error that nobody expected is logged with its statement, and never with whose data it was about.
        hide_parameters=True,
        connect_args={
            "connect_timeout": 5,
            "application_name": "coordinator",
            "keepalives_idle": 5,
            "keepalives_interval": 2,
            "keepalives_count": 3,
            "options": f"-c timezone=UTC {_SERVERS_KEEPALIVES}",
        },
    )


@contextmanager
def transaction() -> Iterator[Session]:
    """A session whose work is committed when the block ends and undone when it raises."""
    with Session(engine(), expire_on_commit=False) as session, session.begin():
        yield session


def database_now(session: Session) -> datetime:
    """The database's clock at this statement (UTC). All deadlines are judged by it, whichever process asks."""
    now: datetime = session.scalars(select(func.clock_timestamp())).one()
    return now
