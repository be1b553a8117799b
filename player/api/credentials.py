"""Who asks: players by access token, the operator's staff by API key.

The one rule kept here: a blueprint is guarded as a whole (``GUARDS`` in the factory), before anything of a request's
body is read.
Who it is found to be is also who the request is counted against (player.api.limits).
"""

from collections.abc import Callable
from uuid import UUID

from flask import Flask, current_app, g, request
from sqlalchemy import select

from player.api.tokens import session_of_access_token
from player.models.players import Player, assert_not_suspended
from player.models.secrets import digest
from player.models.session import transaction
from player.models.sessions import PlayerSession
from player.models.staff import StaffKey
from protocol.errors import LotteryError, Unauthenticated

STAFF_HEADER = "X-Admin-Key"

Guard = Callable[[], None]
_GUARDS = "player.guards"


def ask_player() -> None:
    """Find out which player asks.

    :raises Unauthenticated: no token, one that is not ours, has expired, or whose session has ended.
    :raises Forbidden: the player is suspended.
    """
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise Unauthenticated("send Authorization: Bearer ACCESS_TOKEN")
    player_id, session_id = session_of_access_token(token.strip())
    with transaction() as session:
        found = session.execute(
            select(PlayerSession.ended_at, Player.suspended_at)
            .join(Player, Player.id == PlayerSession.player_id)
            .where(PlayerSession.id == session_id, Player.id == player_id)
        ).first()
    if found is None or found.ended_at is not None:
        raise Unauthenticated("the session has ended; log in again", code="session_ended")
    g.player_id, g.session_id, g.counted_as = player_id, session_id, f"player:{player_id}"
    assert_not_suspended(found.suspended_at)


def ask_staff() -> None:
    """Find out who of the operator's staff asks.

    :raises Unauthenticated: no key, or none that is in force.
    """
    key = request.headers.get(STAFF_HEADER, "")
    with transaction() as session:
        row = session.scalars(
            select(StaffKey).where(StaffKey.digest == digest(key), StaffKey.revoked_at.is_(None))
        ).first()
    if row is None:
        raise Unauthenticated(f"send an admin key that is in force in {STAFF_HEADER}")
    g.staff, g.counted_as = row.name, f"staff:{row.id}"


def register(app: Flask, guards: dict[str, Guard]) -> None:
    """Ask the guard of a request's blueprint, first of all that is done with it. ``guards`` is by blueprint's name."""
    app.extensions[_GUARDS] = guards
    app.before_request(_ask)


def refuse_unknown() -> None:
    """Refuse whom the guard did not let in; registered after the limits, so that a refusal is counted as well."""
    refusal: LotteryError | None = g.pop("refusal", None)
    if refusal is not None:
        raise refusal


def _ask() -> None:
    guard = current_app.extensions[_GUARDS].get(request.blueprint)
    if guard is not None:
        try:
            guard()
        except LotteryError as refusal:
            g.refusal = refusal


def current_player_id() -> int:
    """The player who asks; only in a blueprint guarded by ``ask_player``."""
    return int(g.player_id)


def current_session_id() -> UUID:
    """The session of the player who asks."""
    found: UUID = g.session_id
    return found


def current_staff() -> str:
    """The name of the staff key that asks; only in a blueprint guarded by ``ask_staff``."""
    return str(g.staff)
