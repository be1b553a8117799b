"""``POST /api/payments/callback``: the payment provider says how a payment ended.

The one rule kept here: nothing is believed without the provider's signature over the raw body, and what was believed
once is not taken back: a second callback that says otherwise is refused and logged.
"""

import logging
from collections.abc import Mapping
from typing import Any

from flask import request
from flask.views import MethodView
from marshmallow import Schema, fields

from player.api.fields import Truth, one_of
from player.api.parsing import Blueprint
from player.models.payments import STATUSES, Payment, end_payment
from player.models.session import transaction
from player.payments.port import payment_port
from protocol.errors import Conflict, NotFound

log = logging.getLogger(__name__)

blueprint = Blueprint("payment_callbacks", __name__, url_prefix="/api/payments", description="For payment providers")


class CallbackTakenSchema(Schema):
    """A callback that was understood."""

    received = Truth(required=True)
    paymentId = fields.UUID(required=True)
    status = one_of(STATUSES, required=True)


@blueprint.route("/callback")
class Callback(MethodView):
    """A provider's callback."""

    @blueprint.response(200, CallbackTakenSchema)
    def post(self) -> dict[str, Any]:
        """Take the outcome of a payment.

        The body is the provider's own, and its signature is what lets it in (401 ``bad_signature``). The same outcome
        again is fine; 404 for a payment that is not ours; 409 ``payment_ended`` if it ended the other way, 409
        ``amount_differs``, 409 ``reference_used``.
        """
        row = take_callback({name.lower(): value for name, value in request.headers.items()}, request.get_data())
        return {"received": True, "paymentId": row.id, "status": row.status}


def take_callback(headers: Mapping[str, str], body: bytes) -> Payment:
    """End the payment that a callback is about; the names of ``headers`` in lower case.

    :raises Unauthenticated: not signed by the provider.
    :raises NotFound: money came in or went out, and we know nothing of it; somebody has to look at that.
    :raises Conflict: it contradicts what is on record; so here.
    """
    outcome = payment_port().verify_callback(headers, body)
    try:
        with transaction() as session:
            return end_payment(
                session,
                outcome.payment_id,
                completed=outcome.completed,
                amount=outcome.amount,
                reference=outcome.reference,
            )
    except (Conflict, NotFound) as refusal:
        log.error("payment callback refused", extra={"payment": str(outcome.payment_id), "reason": refusal.code})
        raise
