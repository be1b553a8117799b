"""``/api/auth/…`` for players who are logged in: who am I, my password, my sessions (interface section 4.4)."""

from typing import Any
from uuid import UUID

from flask.views import MethodView

from player.api.accounts import EndedSchema, PasswordChangeSchema, PlayerSchema, SessionsSchema, SuccessSchema
from player.api.credentials import current_player_id, current_session_id
from player.api.parsing import Blueprint
from player.models.accounts import new_password, set_password, still_owner
from player.models.players import Player, lock_player, player
from player.models.session import transaction
from player.models.sessions import end_session, end_sessions, sessions_of

blueprint = Blueprint("own_account", __name__, url_prefix="/api/auth", description="The account of who is logged in")


@blueprint.route("/me")
class Me(MethodView):
    """The player who asks."""

    @blueprint.response(200, PlayerSchema)
    def get(self) -> Player:
        """Who is logged in."""
        with transaction() as session:
            return player(session, current_player_id())


@blueprint.route("/password")
class Password(MethodView):
    """The player's password."""

    @blueprint.arguments(PasswordChangeSchema)
    @blueprint.response(200, SuccessSchema)
    def put(self, body: dict[str, str]) -> dict[str, bool]:
        """Change the password. 403 ``wrong_password`` if the current one is not right. Ends all other sessions."""
        known, new = new_password(current_player_id(), body["currentPassword"], body["newPassword"])
        with transaction() as session:
            row = still_owner(session, current_player_id(), known)
            set_password(session, row, new)
            end_sessions(session, row.id, but=current_session_id())
        return {"success": True}


@blueprint.route("/sessions")
class Sessions(MethodView):
    """The player's sessions."""

    @blueprint.response(200, SessionsSchema)
    def get(self) -> dict[str, Any]:
        """Where the player is logged in, the session used last first."""
        with transaction() as session:
            rows = sessions_of(session, current_player_id())
        for row in rows:
            row.current = row.id == current_session_id()  # type: ignore[attr-defined]
        return {"sessions": rows, "count": len(rows)}

    @blueprint.response(200, EndedSchema)
    def delete(self) -> dict[str, Any]:
        """End all sessions but the one that asks."""
        with transaction() as session:
            row = lock_player(session, current_player_id())
            return {"success": True, "ended": end_sessions(session, row.id, but=current_session_id())}


@blueprint.route("/sessions/<uuid:session_id>")
class OneSession(MethodView):
    """One of the player's sessions."""

    @blueprint.response(200, SuccessSchema)
    def delete(self, session_id: UUID) -> dict[str, bool]:
        """End a session, the one that asks if it is that one."""
        with transaction() as session:
            end_session(session, current_player_id(), session_id)
        return {"success": True}
