"""Making rounds old, and dropping their rows as the chore does."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from models.chores import Name
from models.session import transaction
from models.settings import settings
from tasks.chores import do_chore
from tests.factories import rows


def keep_rows_for(days: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set ROUND_RETENTION. Forgotten with the house."""
    monkeypatch.setenv("ROUND_RETENTION", str(days))
    settings.cache_clear()


def age(round_id: int, days: float) -> None:
    """Let everything that happened to a round have happened so many days earlier."""
    with transaction() as session:
        session.execute(text("SET LOCAL session_replication_role = replica"))
        session.execute(
            text("UPDATE round_transitions SET at = at - make_interval(secs => :days * 86400) WHERE round_id = :id"),
            {"days": days, "id": round_id},
        )


def do_what_is_due() -> int:
    """Do the chore until there is nothing left of it; returns how many pieces that were."""
    with transaction() as session:
        session.execute(text("UPDATE chores SET due_at = now() WHERE id = :id"), {"id": Name.DROP_TICKETS})
    pieces = 1
    while do_chore(Name.DROP_TICKETS):
        pieces += 1
    return pieces


def has_rows(round_id: int) -> bool:
    """Whether the table of its tickets is still there."""
    return rows("SELECT to_regclass(:name) IS NOT NULL", name=f"tickets_r{round_id}") == [(True,)]
