"""Runs migrations against DATABASE_URL, one at a time whoever starts them.

The one rule kept here: two releases at once do not race; the second waits at an advisory lock and finds the work done.
"""

import os
import sys

from alembic import context
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError

from player.models.tables import metadata
from player.settings import SettingsError, sqlalchemy_url

# Both programs number their revisions alike: without this, one takes the other's schema for an old one of its own.
_STRANGERS = text("SELECT to_regclass('alembic_version') IS NOT NULL AND to_regclass('players') IS NULL")


def run() -> None:
    """Bring the schema to the revision asked for."""
    url = os.environ.get("DATABASE_URL")
    if not url:
        raise SettingsError("DATABASE_URL is not set")
    engine = create_engine(sqlalchemy_url(url), connect_args={"connect_timeout": 5})
    with engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('player migrations'))"))
        if connection.scalar(_STRANGERS) and connection.scalar(text("SELECT EXISTS (SELECT FROM alembic_version)")):
            raise SettingsError("DATABASE_URL names another program's database; a node needs one of its own")
        context.configure(connection=connection, target_metadata=metadata)
        context.run_migrations()
    engine.dispose()


try:
    run()
except SettingsError as error:
    sys.exit(f"release: {error}")
except OperationalError:
    # Without its text, which repeats the address and, with some drivers, the password.
    sys.exit("release: the database cannot be reached")
