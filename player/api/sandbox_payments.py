"""``/sandbox/payments/:id``: the page on which a deposit is paid, or declined, in the sandbox.

The one rule kept here: only with ``SANDBOX=1``, and only for whoever holds the address that the deposit was given. What
is pressed goes through the same callback as a real provider's word.
"""

import base64
import hashlib
from decimal import Decimal
from html import escape
from typing import Any
from uuid import UUID

from flask import Response, request
from flask.views import MethodView
from marshmallow import Schema, fields

from player.api.parsing import Blueprint
from player.api.payment_callbacks import take_callback
from player.models.payments import Payment
from player.models.session import transaction
from player.payments.sandbox import callback, is_page_token
from player.settings import settings
from protocol.errors import Conflict, Invalid, NotFound

blueprint = Blueprint("sandbox_payments", __name__, url_prefix="/sandbox/payments", description="Sandbox only")

_STYLE = """
:root { color-scheme: light dark; --ink: #1a2233; --soft: #5b6579; --page: #eef1f6; --card: #fff; --line: #d8dee9;
  --go: #1f6f4a; --edge: #b9c2d0; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ecf4; --soft: #a3adc0; --page: #12161f; --card: #1c2230;
  --line: #313a4d; --go: #2f8f63; --edge: #4a556d; } }
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 1.5rem; background: var(--page);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { width: 100%; max-width: 26rem; background: var(--card); border: 1px solid var(--line); border-radius: 14px;
  padding: 2rem; }
.tag { display: inline-block; padding: .1rem .6rem; border: 1px solid var(--edge); border-radius: 99px;
  color: var(--soft); font-size: .8rem; }
h1 { font-size: 1.15rem; margin: 1rem 0 0; font-weight: 600; }
.sum { font-size: 2.4rem; font-weight: 650; letter-spacing: -.02em; margin: .2rem 0 0; overflow-wrap: anywhere;
  font-variant-numeric: tabular-nums; }
.sum small { font-size: 1rem; font-weight: 500; color: var(--soft); letter-spacing: 0; }
p { color: var(--soft); margin: .6rem 0 1.4rem; }
.id { font: .8rem/1.4 ui-monospace, monospace; overflow-wrap: anywhere; margin: 1.4rem 0 0; }
form { display: grid; gap: .7rem; }
button { font: inherit; font-weight: 600; padding: .75rem 1rem; border-radius: 10px; border: 1px solid var(--edge);
  background: transparent; color: inherit; cursor: pointer; }
button.go { background: var(--go); border-color: var(--go); color: #fff; }
button:focus-visible { outline: 3px solid var(--go); outline-offset: 2px; }
"""
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_SAID = {
    "pending": "No money moves: this is the sandbox. Choose how the payment shall end.",
    "completed": "The payment came in, and the balance has risen. You can close this page.",
    "failed": "The payment was declined, and nothing was charged. You can close this page.",
}
_BUTTONS = """<form method="post">
<button class="go" name="outcome" value="completed">Pay</button>
<button name="outcome" value="failed">Decline</button>
</form>"""


class TokenQuery(Schema):
    """What opens the page."""

    token = fields.String(required=True)


@blueprint.route("/<uuid:payment_id>")
class SandboxPayment(MethodView):
    """The page."""

    @blueprint.arguments(TokenQuery, location="query")
    @blueprint.response(200, {"type": "string"}, content_type="text/html")
    def get(self, query: dict[str, Any], payment_id: UUID) -> Response:
        """Show the page on which a deposit is paid."""
        return _page(_deposit(payment_id, query["token"]))

    @blueprint.arguments(TokenQuery, location="query")
    @blueprint.response(200, {"type": "string"}, content_type="text/html")
    def post(self, query: dict[str, Any], payment_id: UUID) -> Response:
        """Pay or decline it: ``outcome`` is ``completed`` or ``failed`` (a form's field)."""
        row = _deposit(payment_id, query["token"])
        outcome = request.form.get("outcome")
        if outcome not in ("completed", "failed"):
            raise Invalid("outcome must be completed or failed", details={"outcome": ["Not one of these."]})
        try:
            row = take_callback(*callback(row.id, outcome == "completed", row.amount))
        except Conflict:
            # Pressed twice, in two windows: how it ended first is what counts, and what is shown.
            row = _deposit(payment_id, query["token"])
        return _page(row)


def _deposit(payment_id: UUID, token: str) -> Payment:
    if settings().sandbox and is_page_token(payment_id, token):
        with transaction() as session:
            row = session.get(Payment, payment_id)
        if row is not None and row.kind == "deposit":
            return row
    raise NotFound("no such path")


def _page(row: Payment) -> Response:
    amount = (
        f"{Decimal(row.amount).scaleb(-6):,f}".rstrip("0").rstrip(".")
        if row.amount % 1_000_000
        else (f"{row.amount // 1_000_000:,}")
    )
    page = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Deposit of {escape(amount)} USDC · sandbox</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
<span class="tag">Sandbox · {escape(row.status)}</span>
<h1>Deposit</h1>
<div class="sum">{escape(amount)} <small>USDC</small></div>
<p>{escape(_SAID[row.status])}</p>
{_BUTTONS if row.status == "pending" else ""}
<div class="id">Payment {escape(str(row.id))}</div>
</main>
</body>
</html>
"""
    response = Response(page, mimetype="text/html")
    response.headers.update(
        {
            "Content-Security-Policy": _POLICY,
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        }
    )
    return response
