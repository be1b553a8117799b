"""What the coordinator shows, kept for the web processes, which never ask it themselves.

The one rule kept here: a view is replaced whole by a newer one.
"""

from typing import Any

from sqlalchemy import func
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from player.models.chores import View


def keep_view(session: Session, name: str, body: dict[str, Any]) -> None:
    """Keep something as the coordinator shows it now: ``body`` has the published names."""
    view = insert(View).values(name=name, body=body, fetched_at=func.clock_timestamp())
    newer = {"body": view.excluded.body, "fetched_at": view.excluded.fetched_at}
    session.execute(view.on_conflict_do_update(index_elements=[View.name], set_=newer))
