"""Is the database the one this version needs? Asked at every start and by ``GET /health/ready``.

The one rule kept here: a process that cannot work says why in one line and stops, before it takes any work.
"""

import sys
from pathlib import Path

from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, NullPool, create_engine
from sqlalchemy.exc import SQLAlchemyError

from player.models import migrations
from player.settings import SettingsError, settings

_MIGRATIONS = str(Path(str(migrations.__file__)).parent)


def schema_fault(engine: Engine) -> str | None:
    """What is wrong with the database behind ``engine``, as a short sentence; None when it can be used."""
    wanted = ScriptDirectory(_MIGRATIONS).get_current_head()
    try:
        with engine.connect() as connection:
            found = MigrationContext.configure(connection).get_current_revision()
    except SQLAlchemyError:
        return "the database cannot be reached"
    if found == wanted:
        return None
    return (
        f"the database's schema is {found or 'empty'} and must be {wanted}: "
        "run the release step (alembic -c player/alembic.ini upgrade head)"
    )


def exit_unless_usable(process: str) -> None:
    """Check settings and schema at the start of a process; exit with one clear line unless both can be used."""
    try:
        url = settings().database_url
    except SettingsError as error:
        sys.exit(f"{process}: {error}")
    # Not the engine of this process: the one that starts gunicorn forks, and no connection may be inherited.
    fault = schema_fault(create_engine(url, poolclass=NullPool, connect_args={"connect_timeout": 5}))
    if fault is not None:
        sys.exit(f"{process}: {fault}")
