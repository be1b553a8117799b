"""Runs migrations against DATABASE_URL, one at a time whoever starts them.

The one rule kept here: two releases at once do not race; the second waits at an advisory lock and finds the work done.
"""

import os
import re
import sys

from alembic import context
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError

from models.settings import SettingsError, sqlalchemy_url
from models.tables import metadata

_PARTITION = re.compile(r"tickets_r\d+")

# Both programs number their revisions alike: without this, one takes the other's schema for an old one of its own.
_STRANGERS = text("SELECT to_regclass('alembic_version') IS NOT NULL AND to_regclass('operators') IS NULL")


def _include(name: str | None, kind: str, parents: object) -> bool:
    """Rounds make their own ticket partitions; they are data, not schema."""
    return not (kind == "table" and name is not None and _PARTITION.fullmatch(name))


def run() -> None:
    """Bring the schema to the revision asked for, or print the SQL that would."""
    url = os.environ.get("DATABASE_URL")
    if not url:
        raise SettingsError("DATABASE_URL is not set")
    if context.is_offline_mode():
        context.configure(url=sqlalchemy_url(url), literal_binds=True, target_metadata=metadata, include_name=_include)
        with context.begin_transaction():
            context.run_migrations()
        return
    engine = create_engine(sqlalchemy_url(url), connect_args={"connect_timeout": 5})
    with engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('coordinator migrations'))"))
        if connection.scalar(_STRANGERS) and connection.scalar(text("SELECT EXISTS (SELECT FROM alembic_version)")):
            raise SettingsError("DATABASE_URL names another program's database; the coordinator needs one of its own")
        context.configure(connection=connection, target_metadata=metadata, include_name=_include)
        context.run_migrations()
    engine.dispose()


try:
    run()
except SettingsError as error:
    sys.exit(f"release: {error}")
except OperationalError:
    # Without its text, which repeats the address and, with some drivers, the password.
    sys.exit("release: the database cannot be reached")
