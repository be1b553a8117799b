"""``GET /api/player/balance`` and ``/transactions``: what a player has, and how it came to be that."""

from typing import Any

from flask.views import MethodView
from marshmallow import Schema, fields

from player.api.credentials import current_player_id
from player.api.fields import Amount, Moment, Page, Text, Whole, one_of
from player.api.parsing import Blueprint
from player.models.ledger import balance, player_account
from player.models.payments import pending_withdrawals
from player.models.session import transaction
from player.models.transactions import STATUSES, TYPES, transaction_of, transactions_of

blueprint = Blueprint("money", __name__, url_prefix="/api/player", description="Balance and statement")

CURRENCY = "USDC"
LARGEST_ID = 2**63 - 1


class BalanceSchema(Schema):
    """A player's money, micro-USDC."""

    balance = Amount(required=True, metadata={"description": "What can be spent or withdrawn."})
    currency = fields.String(required=True)
    pendingWithdrawals = Amount(
        required=True, metadata={"description": "Taken off the balance and not paid out yet; comes back if it fails."}
    )


class TransactionSchema(Schema):
    """One line of a player's statement (interface section 2.12)."""

    id = Whole(lowest=1, required=True)
    type = one_of(TYPES, required=True)
    amount = Amount(required=True, metadata={"description": "Signed: below zero when money leaves the balance."})
    status = one_of(STATUSES, required=True)
    reference = Text(
        allow_none=True,
        metadata={"description": "What it was for: a ticketId, the id of a payment, or what staff wrote."},
    )
    createdAt = Moment(attribute="created_at", required=True)


class TransactionsSchema(Schema):
    """Part of a statement."""

    transactions = fields.List(fields.Nested(TransactionSchema), required=True)
    count = Whole(required=True, metadata={"description": "How many are in this answer."})


class TransactionsQuery(Page):
    """Which lines of the statement."""

    type = one_of(TYPES)


@blueprint.route("/balance")
class PlayerBalance(MethodView):
    """What a player has."""

    @blueprint.response(200, BalanceSchema)
    def get(self) -> dict[str, Any]:
        """Show the balance."""
        player_id = current_player_id()
        with transaction() as session:
            return {
                "balance": balance(session, player_account(player_id)),
                "currency": CURRENCY,
                "pendingWithdrawals": pending_withdrawals(session, player_id),
            }


@blueprint.route("/transactions")
class Transactions(MethodView):
    """A statement."""

    @blueprint.arguments(TransactionsQuery, location="query")
    @blueprint.response(200, TransactionsSchema)
    def get(self, query: dict[str, Any]) -> dict[str, Any]:
        """List the statement, newest first.

        The amounts of all that did not fail, a deposit on its way aside, add up to the balance.
        """
        with transaction() as session:
            rows = transactions_of(
                session,
                current_player_id(),
                type_=query.get("type"),
                limit=query["limit"],
                offset=query["offset"],
            )
        return {"transactions": rows, "count": len(rows)}


@blueprint.route(f"/transactions/<int(max={LARGEST_ID}):number>")
class OneTransaction(MethodView):
    """One line."""

    @blueprint.response(200, TransactionSchema)
    def get(self, number: int) -> Any:
        """Show one line of the statement by its id."""
        with transaction() as session:
            return transaction_of(session, current_player_id(), number)
