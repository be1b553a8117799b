"""``/api/admin/players``: finding players, looking at one, suspending, reinstating and crediting her.

One rule: what is changed here is noted with the reason in the same transaction.
"""

from typing import Any

from flask.views import MethodView
from marshmallow import Schema

from player.api.admin.player_shapes import (
    StaffCreditedSchema,
    StaffPlayerFileSchema,
    StaffPlayerSchema,
    StaffTransactionSchema,
    shown_file,
)
from player.api.admin.shapes import listed, listing, why, yes_or_no
from player.api.credentials import current_staff
from player.api.fields import Amount, Page, Text, one_of
from player.api.parsing import Blueprint
from player.models.credits import credit_player
from player.models.desk.players import find_players, player_file, statement
from player.models.ledger import balance, player_account
from player.models.players import KYC_LEVELS
from player.models.session import transaction
from player.models.staff import note
from player.models.suspensions import reinstate, suspend
from player.models.transactions import TYPES

blueprint = Blueprint("admin_players", __name__, url_prefix="/api/admin/players", description="Players")


class StaffPlayersQuerySchema(Page):
    """Which players."""

    search = Text(
        shortest=1,
        load_default=None,
        metadata={"description": "An id, or a part of an e-mail address or a display name"},
    )
    kycLevel = one_of(KYC_LEVELS, load_default=None, attribute="kyc_level")
    suspended = yes_or_no("Suspended players only, or all others")


class StaffStatementQuerySchema(Page):
    """Which transactions."""

    type = one_of(TYPES, load_default=None)


class StaffReasonSchema(Schema):
    """Why something is done."""

    reason = why()


class StaffCreditSchema(Schema):
    """What a player is given, and why."""

    amountUsdc = Amount(required=True, attribute="amount", metadata={"description": "micro-USDC"})
    reference = Text(
        required=True,
        shortest=1,
        longest=100,
        metadata={"description": "Your own name for this credit; the same one again credits nothing more"},
    )
    reason = why()


@blueprint.route("")
class Players(MethodView):
    """All players."""

    @blueprint.arguments(StaffPlayersQuerySchema, location="query")
    @blueprint.response(200, listing("StaffPlayers", "players", StaffPlayerSchema))
    def get(self, query: dict[str, Any]) -> dict[str, Any]:
        """Find players

        Newest first, by a part of their e-mail address or name, by id, by KYC level, suspended or not.
        """
        with transaction() as session:
            return listed("players", find_players(session, **query))


@blueprint.route("/<int:player_id>")
class OnePlayer(MethodView):
    """One player."""

    @blueprint.response(200, StaffPlayerFileSchema)
    def get(self, player_id: int) -> dict[str, Any]:
        """Look at a player

        With balance, limits, exclusion, how many sessions are open and how many tickets were bought.
        """
        with transaction() as session:
            return shown_file(player_file(session, player_id))


@blueprint.route("/<int:player_id>/transactions")
class Statement(MethodView):
    """One player's money."""

    @blueprint.arguments(StaffStatementQuerySchema, location="query")
    @blueprint.response(200, listing("StaffStatement", "transactions", StaffTransactionSchema))
    def get(self, query: dict[str, Any], player_id: int) -> dict[str, Any]:
        """Read a player's statement

        Newest first. What did not fail adds up to the balance.
        """
        with transaction() as session:
            return listed("transactions", statement(session, player_id, **query))


@blueprint.route("/<int:player_id>/suspend")
class Suspend(MethodView):
    """Keeping somebody out."""

    @blueprint.arguments(StaffReasonSchema)
    @blueprint.response(200, StaffPlayerSchema)
    def post(self, body: dict[str, Any], player_id: int) -> Any:
        """Suspend a player

        Ends every session; the player cannot log in until reinstated. Money and tickets stay hers. 409
        ``already_suspended``.
        """
        with transaction() as session:
            found = suspend(session, player_id, body["reason"])
            note(session, current_staff(), "player.suspend", f"player:{player_id}", body["reason"])
            return found


@blueprint.route("/<int:player_id>/reinstate")
class Reinstate(MethodView):
    """Letting somebody in again."""

    @blueprint.arguments(StaffReasonSchema)
    @blueprint.response(200, StaffPlayerSchema)
    def post(self, body: dict[str, Any], player_id: int) -> Any:
        """Let a suspended player log in again

        409 ``not_suspended``. A self-exclusion is the player's own and goes on.
        """
        with transaction() as session:
            found = reinstate(session, player_id)
            note(session, current_staff(), "player.reinstate", f"player:{player_id}", body["reason"])
            return found


@blueprint.route("/<int:player_id>/credit")
class Credit(MethodView):
    """Giving money to a player."""

    @blueprint.arguments(StaffCreditSchema)
    @blueprint.response(200, StaffCreditedSchema)
    def post(self, body: dict[str, Any], player_id: int) -> dict[str, Any]:
        """Credit a player

        Out of the house's money, at once. Asked again with the same reference nothing more is given (``credited`` is
        false); with another amount it is refused with 409 ``reference_used``.
        """
        amount, reference = body["amount"], body["reference"]
        with transaction() as session:
            given = credit_player(session, player_id, amount, reference)
            if given:
                details = {"amountUsdc": str(amount), "reference": reference}
                note(session, current_staff(), "player.credit", f"player:{player_id}", body["reason"], details)
            return {"credited": given, "balance": balance(session, player_account(player_id))}
