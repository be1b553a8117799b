"""The sandbox's payment provider: a page with two buttons, and withdrawals that are paid at once.

The one rule kept here: it takes the way a real provider takes. Its page signs a callback as a provider would, and the
callback is read by the code that every deposit depends on.
"""

import json
from collections.abc import Mapping
from uuid import UUID

from player.payments.port import Order, Outcome
from player.payments.signature import is_signed, sign
from player.settings import settings
from protocol.canonical import parse_strict_json
from protocol.errors import Invalid, Unauthenticated

SIGNATURE_HEADER = "X-Payment-Signature"
DECLINED = "declined"
"""A withdrawal whose destination contains this word fails, so that failing can be tried out."""

_CALLBACK = "payment-callback"
_PAGE = "sandbox-page"


class SandboxPayments:
    """A provider for trying things out. It moves no money."""

    def begin_deposit(self, order: Order) -> str:
        """The address of our own page for this deposit."""
        token = page_token(order.id)
        return f"{settings().public_url}/sandbox/payments/{order.id}?token={token}"

    def begin_withdrawal(self, order: Order) -> Outcome | None:
        """Pay at once, or decline if the destination says so."""
        completed = DECLINED not in (order.destination or "").lower()
        return Outcome(order.id, completed, order.amount, f"sandbox-{order.id}")

    def verify_callback(self, headers: Mapping[str, str], body: bytes) -> Outcome:
        """``{"paymentId", "status": "completed" | "failed", "amount", "reference"}``, signed over the raw body."""
        if not is_signed(settings().payment_secret, _CALLBACK, body, headers.get(SIGNATURE_HEADER.lower(), "")):
            raise Unauthenticated(f"{SIGNATURE_HEADER} is not the signature of this body", code="bad_signature")
        told = parse_strict_json(body)
        try:
            payment_id, status = UUID(told["paymentId"]), told["status"]
            amount, reference = int(told["amount"]), str(told["reference"])
        except (KeyError, TypeError, ValueError, AttributeError):
            raise Invalid("the callback lacks paymentId, status, amount or reference") from None
        if status not in ("completed", "failed"):
            raise Invalid("the callback's status is neither completed nor failed")
        return Outcome(payment_id, status == "completed", amount, reference)


def callback(payment_id: UUID, completed: bool, amount: int) -> tuple[dict[str, str], bytes]:
    """What the sandbox's provider sends when a payment ended: headers and body."""
    body = json.dumps(
        {
            "paymentId": str(payment_id),
            "status": "completed" if completed else "failed",
            "amount": str(amount),
            "reference": f"sandbox-{payment_id}",
        }
    ).encode()
    return {SIGNATURE_HEADER.lower(): sign(settings().payment_secret, _CALLBACK, body)}, body


def page_token(payment_id: UUID) -> str:
    """What opens the page of one deposit."""
    return sign(settings().payment_secret, _PAGE, payment_id.bytes)


def is_page_token(payment_id: UUID, token: str) -> bool:
    """Whether ``token`` opens the page of this deposit."""
    return is_signed(settings().payment_secret, _PAGE, payment_id.bytes, token)
