"""Self-exclusion: a player bars herself from playing for a time.

The one rule kept here: it can be made longer at any time and shorter never; the database refuses that too.
"""

from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from player.models.players import Player
from player.models.session import database_now
from protocol.errors import Conflict
from protocol.timestamps import format_timestamp

LONGEST_DAYS = 3650


def exclude(session: Session, row: Player, days: int) -> datetime:
    """Bar a player, whose row is held by the caller (``lock_player``), for ``days`` from now (1 to LONGEST_DAYS);
    until when that is.

    :raises Conflict: code ``exclusion_shortened``, with ``details.selfExclusionUntil``: she is barred for longer.
    """
    until = database_now(session) + timedelta(days=days)
    if row.self_excluded_until is not None and row.self_excluded_until > until:
        raise Conflict(
            "you are excluded for longer than that, and an exclusion cannot be shortened",
            code="exclusion_shortened",
            details={"selfExclusionUntil": format_timestamp(row.self_excluded_until)},
        )
    row.self_excluded_until = until
    session.flush()
    return until


def excluded_until(session: Session, row: Player) -> datetime | None:
    """Until when a player is barred; None when she is not, or not any more."""
    until = row.self_excluded_until
    return until if until is not None and until > database_now(session) else None
