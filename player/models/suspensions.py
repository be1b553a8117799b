"""Suspending players: the operator's staff keeps somebody out, for a reason, and may let her in again.

The one rule kept here: with a suspension every session of the player ends; what is hers stays hers.
"""

from sqlalchemy import func, update
from sqlalchemy.orm import Session

from player.models.players import Player, lock_player
from player.models.sessions import PlayerSession
from protocol.errors import Conflict


def suspend(session: Session, player_id: int, reason: str) -> Player:
    """Keep a player out; every request of hers is refused from now on.

    :raises NotFound: no such player.
    :raises Conflict: suspended already.
    """
    found = lock_player(session, player_id)
    if found.suspended_at is not None:
        raise Conflict("the player is suspended already", code="already_suspended")
    found.suspended_at, found.suspended_reason = func.clock_timestamp(), reason
    ended = update(PlayerSession).where(PlayerSession.player_id == player_id, PlayerSession.ended_at.is_(None))
    session.execute(ended.values(ended_at=func.clock_timestamp()))
    session.flush()
    session.refresh(found)
    return found


def reinstate(session: Session, player_id: int) -> Player:
    """Let a suspended player log in again.

    :raises NotFound: no such player.
    :raises Conflict: not suspended.
    """
    found = lock_player(session, player_id)
    if found.suspended_at is None:
        raise Conflict("the player is not suspended", code="not_suspended")
    found.suspended_at = found.suspended_reason = None
    return found
