"""``/api/player/deposits`` and ``/withdrawals``: money in and out.

The one rule kept here: the provider is asked with no session open, and only for what is on record already. An answer
that got lost is asked for again, of us and of the provider.
"""

from typing import Any
from uuid import UUID

from flask import Response, jsonify
from flask.views import MethodView
from marshmallow import Schema, fields
from sqlalchemy.orm import Session

from player.api.credentials import current_player_id
from player.api.fields import Amount, Moment, Page, Text, Whole, one_of
from player.api.idempotency import KEY_PARAMETER, carry_out_once
from player.api.parsing import Blueprint
from player.models.exclusions import excluded_until
from player.models.ledger import balance, player_account
from player.models.payments import STATUSES, Payment, ask_deposit, ask_withdrawal, payment_of, payments_of
from player.models.players import player
from player.models.session import transaction
from player.payments.port import Order, payment_port

blueprint = Blueprint("payments", __name__, url_prefix="/api/player", description="Deposits and withdrawals")


class DepositSchema(Schema):
    """Money on its way in."""

    id = fields.UUID(required=True)
    amount = Amount(required=True, metadata={"description": "micro-USDC."})
    status = one_of(STATUSES, required=True)
    transactionId = Whole(attribute="transaction_id", required=True)
    createdAt = Moment(attribute="created_at", required=True)
    endedAt = Moment(attribute="ended_at", required=True, allow_none=True)


class OpenDepositSchema(DepositSchema):
    """A deposit with the address at which it is paid."""

    redirectUrl = fields.String(
        required=True,
        allow_none=True,
        metadata={"description": "Where to send the player; null once it has ended, and while she excludes herself."},
    )


class WithdrawalSchema(DepositSchema):
    """Money on its way out."""

    destination = Text(required=True)


class AskDepositSchema(Schema):
    """How much to pay in."""

    amount = Amount(required=True, metadata={"description": "micro-USDC."})


class AskWithdrawalSchema(AskDepositSchema):
    """How much to pay out, and where to."""

    destination = Text(
        shortest=1, longest=200, required=True, metadata={"description": "An address or account your bank understands."}
    )


class BegunDepositSchema(Schema):
    """A deposit that was begun."""

    payment = fields.Nested(OpenDepositSchema, required=True)


class BegunWithdrawalSchema(Schema):
    """A withdrawal that was begun."""

    payment = fields.Nested(WithdrawalSchema, required=True)
    balance = Amount(required=True, metadata={"description": "What is left, micro-USDC."})


class DepositsSchema(Schema):
    """Some of a player's deposits."""

    deposits = fields.List(fields.Nested(DepositSchema), required=True)
    count = Whole(required=True)


class WithdrawalsSchema(Schema):
    """Some of a player's withdrawals."""

    withdrawals = fields.List(fields.Nested(WithdrawalSchema), required=True)
    count = Whole(required=True)


class PaymentsQuery(Page):
    """Which of them."""

    status = one_of(STATUSES)


@blueprint.route("/deposits")
class Deposits(MethodView):
    """Paying in."""

    @blueprint.doc(parameters=[KEY_PARAMETER])
    @blueprint.arguments(AskDepositSchema)
    @blueprint.response(201, BegunDepositSchema)
    def post(self, body: dict[str, Any]) -> Response:
        """Begin a deposit, and send the player to ``redirectUrl``.

        The balance rises when the provider says that the money came in. 403 ``self_excluded``; 503 while the provider
        does not answer: send it again with the same key. Sent again once the deposit has ended, or by whoever has
        excluded herself since, the answer has no ``redirectUrl``.
        """

        def ask(session: Session, player_id: int) -> dict[str, Any]:
            return {"payment": ask_deposit(session, player_id, body["amount"])}

        answer = carry_out_once(201, _KeptDepositSchema, ask)
        kept = answer.body["payment"]
        _, address = _with_address(UUID(kept["id"]))
        return answer.response(payment={**kept, "redirectUrl": address})

    @blueprint.arguments(PaymentsQuery, location="query")
    @blueprint.response(200, DepositsSchema)
    def get(self, query: dict[str, Any]) -> dict[str, Any]:
        """List deposits, newest first."""
        rows = _listed("deposit", query)
        return {"deposits": rows, "count": len(rows)}


@blueprint.route("/deposits/<uuid:payment_id>")
class OneDeposit(MethodView):
    """One deposit."""

    @blueprint.response(200, OpenDepositSchema)
    def get(self, payment_id: UUID) -> Response:
        """Show one deposit; while it is pending with the address at which it can still be paid, unless the player has
        excluded herself."""
        row, address = _with_address(payment_id)
        return jsonify({**DepositSchema().dump(row), "redirectUrl": address})


@blueprint.route("/withdrawals")
class Withdrawals(MethodView):
    """Paying out."""

    @blueprint.doc(parameters=[KEY_PARAMETER])
    @blueprint.arguments(AskWithdrawalSchema)
    @blueprint.response(201, BegunWithdrawalSchema)
    def post(self, body: dict[str, Any]) -> Response:
        """Withdraw money.

        It leaves the balance at once, and comes back if paying it out fails. 403 ``kyc_required`` beyond what may be
        withdrawn without a verified identity; 409 ``insufficient_funds``. Open also to whoever excluded herself.
        """

        def ask(session: Session, player_id: int) -> dict[str, Any]:
            payment = ask_withdrawal(session, player_id, body["amount"], body["destination"])
            return {"payment": payment, "balance": balance(session, player_account(player_id))}

        return carry_out_once(201, BegunWithdrawalSchema, ask).response()

    @blueprint.arguments(PaymentsQuery, location="query")
    @blueprint.response(200, WithdrawalsSchema)
    def get(self, query: dict[str, Any]) -> dict[str, Any]:
        """List withdrawals, newest first."""
        rows = _listed("withdrawal", query)
        return {"withdrawals": rows, "count": len(rows)}


@blueprint.route("/withdrawals/<uuid:payment_id>")
class OneWithdrawal(MethodView):
    """One withdrawal."""

    @blueprint.response(200, WithdrawalSchema)
    def get(self, payment_id: UUID) -> Any:
        """Show one withdrawal."""
        with transaction() as session:
            return payment_of(session, current_player_id(), "withdrawal", payment_id)


class _KeptDepositSchema(Schema):
    payment = fields.Nested(DepositSchema, required=True)


def _with_address(payment_id: UUID) -> tuple[Payment, str | None]:
    """A deposit of the player who asks, and where it is paid; None once it has ended. Nor is a player who excluded
    herself shown the way to what she began before: she barred herself from paying in.
    """
    player_id = current_player_id()
    with transaction() as session:
        row = payment_of(session, player_id, "deposit", payment_id)
        barred = excluded_until(session, player(session, player_id)) is not None
    if row.status != "pending" or barred:
        return row, None
    return row, payment_port().begin_deposit(Order(row.id, row.player_id, row.amount))


def _listed(kind: str, query: dict[str, Any]) -> list[Payment]:
    with transaction() as session:
        rows = payments_of(
            session,
            current_player_id(),
            kind,
            status=query.get("status"),
            limit=query["limit"],
            offset=query["offset"],
        )
    return list(rows)
