"""Money in and out: a deposit is credited once, a withdrawal is paid once, whatever is told twice or not at all."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest
from flask.testing import FlaskClient
from sqlalchemy import select, update

from player.models.books import books
from player.models.payments import Payment, ask_withdrawal, end_payment
from player.models.players import Player
from player.models.session import database_now, transaction
from player.models.suspensions import suspend
from player.payments import port
from player.payments.port import NoPayments, Order, Outcome
from player.payments.sandbox import SandboxPayments, callback
from protocol.errors import Conflict, Forbidden, Unavailable
from tests.player.factories import APlayer, a_player

DEPOSITS, WITHDRAWALS, CALLBACK = "/api/player/deposits", "/api/player/withdrawals", "/api/payments/callback"


def deposit(client: FlaskClient, who: APlayer, amount: str = "25000000", **headers: str) -> Any:
    return client.post(DEPOSITS, json={"amount": amount}, headers=who.headers | headers)


def withdraw(client: FlaskClient, who: APlayer, amount: str, destination: str = "my bank", **headers: str) -> Any:
    body = {"amount": amount, "destination": destination}
    return client.post(WITHDRAWALS, json=body, headers=who.headers | headers)


def tell(client: FlaskClient, payment: str, completed: bool = True, amount: int = 25_000_000) -> Any:
    headers, body = callback(UUID(payment), completed, amount)
    return client.post(CALLBACK, data=body, headers=headers)


def balance_of(client: FlaskClient, who: APlayer) -> tuple[str, str]:
    shown = client.get("/api/player/balance", headers=who.headers).json
    return shown["balance"], shown["pendingWithdrawals"]


def assert_books_hold() -> None:
    with transaction() as session:
        assert books(session).faults == ()


def use(monkeypatch: pytest.MonkeyPatch, provider: object) -> None:
    """Let ``provider`` be the node's, as PAYMENT_PORT would."""
    monkeypatch.setattr(port, "import_module", lambda name: SimpleNamespace(SandboxPayments=lambda: provider))


def tell_provider(payment: str) -> None:
    """A worker's turn."""
    from player.tasks.payments import tell_provider as actor

    actor(payment)


def make_due() -> None:
    with transaction() as session:
        session.execute(update(Payment).where(Payment.due_at.is_not(None)).values(due_at=database_now(session)))


def test_a_deposit_is_paid_on_the_sandboxs_page_and_credited_once(client: FlaskClient) -> None:
    ana = a_player()
    begun = deposit(client, ana, **{"Idempotency-Key": "d"})
    assert begun.status_code == 201
    payment = begun.json["payment"]
    assert (payment["status"], payment["amount"]) == ("pending", "25000000")
    assert deposit(client, ana, **{"Idempotency-Key": "d"}).json == begun.json
    assert balance_of(client, ana) == ("0", "0")

    page = payment["redirectUrl"].removeprefix("http://127.0.0.1:8100")
    shown = client.get(page)
    assert shown.mimetype == "text/html"
    assert "25 <small>USDC" in shown.text
    assert "default-src 'none'" in shown.headers["Content-Security-Policy"]
    assert not re.search(r"<script|https?://", shown.text)
    style = re.search(r"<style>(.*)</style>", shown.text, re.DOTALL)
    assert style is not None
    style_hash = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert f"style-src 'sha256-{style_hash}'" in shown.headers["Content-Security-Policy"]
    paid = client.post(page, data={"outcome": "completed"})
    assert "The payment came in" in paid.text
    assert "<button" not in paid.text
    assert "The payment came in" in client.post(page, data={"outcome": "failed"}).text
    assert tell(client, payment["id"]).json["status"] == "completed"

    assert balance_of(client, ana) == ("25000000", "0")
    one = client.get(f"{DEPOSITS}/{payment['id']}", headers=ana.headers).json
    assert set(one) == set(payment)
    assert deposit(client, ana, **{"Idempotency-Key": "d"}).json["payment"]["redirectUrl"] is None
    assert (one["status"], one["redirectUrl"], one["createdAt"]) == ("completed", None, payment["createdAt"])
    assert client.get(f"{DEPOSITS}?status=completed", headers=ana.headers).json["count"] == 1
    (line,) = client.get("/api/player/transactions?type=deposit", headers=ana.headers).json["transactions"]
    assert (line["amount"], line["status"], line["reference"]) == ("25000000", "completed", payment["id"])
    assert_books_hold()


def test_the_sandboxs_page_opens_to_its_address_only(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    page = deposit(client, a_player()).json["payment"]["redirectUrl"].removeprefix("http://127.0.0.1:8100")
    other = deposit(client, a_player()).json["payment"]["id"]
    for wrong in (page[:-1], page.split("?")[0] + "?token=é", f"/sandbox/payments/{other}?" + page.split("?")[1]):
        assert client.get(wrong).json["code"] == "not_found"
    assert client.post(page, data={"outcome": "perhaps"}).status_code == 422
    from player import settings

    monkeypatch.setenv("SANDBOX", "0")
    monkeypatch.setenv("SMTP_URL", "smtp://node:secret@mail.example:25")
    settings.settings.cache_clear()
    assert client.get(page).json["code"] == "not_found"


def test_a_declined_deposit_never_counts(client: FlaskClient) -> None:
    ana = a_player()
    payment = deposit(client, ana).json["payment"]["id"]
    assert tell(client, payment, completed=False).json["status"] == "failed"
    assert balance_of(client, ana) == ("0", "0")
    assert_books_hold()


def test_a_callback_is_believed_with_its_signature_only_and_not_taken_back(
    client: FlaskClient, caplog: pytest.LogCaptureFixture
) -> None:
    ana = a_player()
    payment = deposit(client, ana).json["payment"]["id"]
    headers, body = callback(UUID(payment), True, 25_000_000)
    for forged in ({}, {"X-Payment-Signature": "0" * 64}, {"X-Payment-Signature": "é"}):
        answer = client.post(CALLBACK, data=body, headers=forged)
        assert (answer.status_code, answer.json["code"]) == (401, "bad_signature")
    assert client.post(CALLBACK, data=body + b" ", headers=headers).status_code == 401
    assert tell(client, payment, amount=26_000_000).json["code"] == "amount_differs"
    caplog.clear()
    unknown = str(uuid4())
    assert tell(client, unknown).status_code == 404
    assert [(record.levelname, record.__dict__["payment"]) for record in caplog.records] == [("ERROR", unknown)]
    assert balance_of(client, ana) == ("0", "0")

    assert tell(client, payment).status_code == 200
    assert tell(client, payment).status_code == 200
    caplog.clear()
    refused = tell(client, payment, completed=False)
    assert (refused.status_code, refused.json["code"]) == (409, "payment_ended")
    assert [(record.levelname, record.__dict__["payment"]) for record in caplog.records] == [("ERROR", payment)]
    assert balance_of(client, ana) == ("25000000", "0")
    assert_books_hold()


def test_two_payments_of_one_reference_are_not_both_believed(client: FlaskClient) -> None:
    ana = a_player()
    one, other, *unnamed = (UUID(deposit(client, ana, "5").json["payment"]["id"]) for _ in range(4))

    def end(payment: UUID, reference: str) -> None:
        with transaction() as session:
            end_payment(session, payment, completed=True, amount=5, reference=reference)

    end(one, "bank-17")
    with pytest.raises(Conflict, match="reference"):
        end(other, "bank-17")
    for payment in unnamed:
        end(payment, "")
    assert balance_of(client, ana) == ("15", "0")
    assert_books_hold()


def test_a_suspension_overtakes_a_withdrawal_that_was_let_in_before(client: FlaskClient) -> None:
    ana = a_player(balance=50)
    with transaction() as session:
        suspend(session, ana.id, "a stolen card")
    with pytest.raises(Forbidden), transaction() as session:
        ask_withdrawal(session, ana.id, 50, "my bank")


def test_money_that_came_in_is_the_players_though_she_excluded_herself_since(client: FlaskClient) -> None:
    ana = a_player()
    payment = deposit(client, ana).json["payment"]["id"]
    with transaction() as session:
        session.execute(update(Player).values(self_excluded_until=datetime.now(UTC) + timedelta(days=7)))
    assert tell(client, payment).status_code == 200
    assert balance_of(client, ana) == ("25000000", "0")


def test_whoever_excludes_herself_is_not_shown_the_way_to_a_deposit_begun_before(client: FlaskClient) -> None:
    ana, again = a_player(), {"Idempotency-Key": "d"}
    payment = deposit(client, ana, **again).json["payment"]
    assert payment["redirectUrl"] is not None
    assert client.post("/api/player/self-exclusion", json={"durationDays": 7}, headers=ana.headers).status_code == 200
    assert client.get(f"{DEPOSITS}/{payment['id']}", headers=ana.headers).json["redirectUrl"] is None
    assert deposit(client, ana, **again).json["payment"] == {**payment, "redirectUrl": None}


def test_a_withdrawal_leaves_the_balance_at_once_and_is_paid_by_a_worker(client: FlaskClient) -> None:
    ana, eva = a_player(balance=50), a_player()
    begun = withdraw(client, ana, "30")
    assert begun.status_code == 201
    assert begun.json["balance"] == "20"
    payment = begun.json["payment"]
    assert (payment["status"], payment["destination"], payment["endedAt"]) == ("pending", "my bank", None)
    assert balance_of(client, ana) == ("20", "30")
    assert withdraw(client, ana, "21").json["code"] == "insufficient_funds"
    assert client.get(f"{WITHDRAWALS}/{payment['id']}", headers=eva.headers).status_code == 404
    assert client.get(f"{DEPOSITS}/{payment['id']}", headers=ana.headers).status_code == 404
    assert_books_hold()

    tell_provider(payment["id"])
    tell_provider(payment["id"])
    assert balance_of(client, ana) == ("20", "0")
    assert client.get(f"{WITHDRAWALS}/{payment['id']}", headers=ana.headers).json["status"] == "completed"
    assert client.get(f"{WITHDRAWALS}", headers=ana.headers).json["count"] == 1
    assert_books_hold()


def test_a_withdrawal_that_is_declined_comes_back(client: FlaskClient) -> None:
    ana = a_player(balance=50)
    payment = withdraw(client, ana, "30", "a declined account").json["payment"]["id"]
    tell_provider(payment)
    assert balance_of(client, ana) == ("50", "0")
    (line,) = client.get("/api/player/transactions?type=withdrawal", headers=ana.headers).json["transactions"]
    assert (line["amount"], line["status"]) == ("-30", "failed")
    assert_books_hold()


class Ledger(SandboxPayments):
    """A provider that keeps its own books, is away when told to be, and may keep the outcome to itself."""

    def __init__(self) -> None:
        self.paid: dict[UUID, int] = {}
        self.calls = 0
        self.away = self.silent = False

    def begin_withdrawal(self, order: Order) -> Outcome | None:
        self.calls += 1
        if self.away:
            raise Unavailable("away")
        self.paid[order.id] = order.amount
        return None if self.silent else Outcome(order.id, True, order.amount, f"ref-{order.id}")


def test_a_provider_is_told_until_it_answers_and_pays_once(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = Ledger()
    use(monkeypatch, provider)
    ana = a_player(balance=50)
    payment = withdraw(client, ana, "30").json["payment"]["id"]
    provider.away = True
    tell_provider(payment)
    tell_provider(payment)
    assert provider.calls == 1  # not due again yet
    provider.away, provider.silent = False, True
    make_due()
    tell_provider(payment)
    assert balance_of(client, ana) == ("20", "30")
    with transaction() as session:
        waits = session.scalars(select(Payment.due_at)).one()
        assert waits is not None
        assert waits > database_now(session)
    # Its callback is lost; it is asked again, and tells.
    provider.silent = False
    make_due()
    tell_provider(payment)
    assert balance_of(client, ana) == ("20", "0")
    assert provider.paid == {UUID(payment): 30}
    assert tell(client, payment, amount=30).status_code == 200
    assert_books_hold()


def test_a_worker_that_dies_after_the_provider_paid_costs_nothing_but_time(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Dying(Ledger):
        def begin_withdrawal(self, order: Order) -> Outcome | None:
            outcome = super().begin_withdrawal(order)
            if self.calls == 1:
                raise SystemExit
            return outcome

    provider = Dying()
    use(monkeypatch, provider)
    ana = a_player(balance=50)
    payment = withdraw(client, ana, "30").json["payment"]["id"]
    with pytest.raises(SystemExit):
        tell_provider(payment)
    tell_provider(payment)
    assert provider.calls == 1  # its lease is not over
    make_due()
    tell_provider(payment)
    assert balance_of(client, ana) == ("20", "0")
    assert provider.paid == {UUID(payment): 30}
    assert_books_hold()


def test_a_deposit_is_on_record_though_the_provider_is_away(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana = a_player()
    with monkeypatch.context() as away:
        use(away, NoPayments())
        refused = deposit(client, ana, **{"Idempotency-Key": "d"})
        assert (refused.status_code, refused.json["code"]) == (503, "payments_off")
    begun = deposit(client, ana, **{"Idempotency-Key": "d"})
    assert (begun.status_code, begun.headers["Idempotency-Replayed"]) == (201, "true")
    assert begun.json["payment"]["redirectUrl"]
    assert client.get(DEPOSITS, headers=ana.headers).json["count"] == 1


def test_much_is_not_withdrawn_by_somebody_nobody_knows(client: FlaskClient) -> None:
    ana = a_player(balance=3_000_000_000)
    assert withdraw(client, ana, "1500000000").status_code == 201
    refused = withdraw(client, ana, "500000001")
    assert (refused.status_code, refused.json["code"]) == (403, "kyc_required")
    assert refused.json["details"] == {"limit": "2000000000", "withdrawn": "1500000000"}
    assert withdraw(client, ana, "500000000").status_code == 201
    with transaction() as session:
        session.execute(update(Player).values(kyc_level="basic"))
    assert withdraw(client, ana, "500000001").status_code == 201


@pytest.mark.parametrize("body", [{}, {"amount": 5}, {"amount": "0"}, {"amount": "-5"}, {"amount": "5", "to": "x"}])
def test_what_is_no_amount_is_refused(client: FlaskClient, body: dict[str, Any]) -> None:
    ana = a_player()
    assert client.post(DEPOSITS, json=body, headers=ana.headers).status_code == 422
    assert client.post(WITHDRAWALS, json=body | {"destination": " "}, headers=ana.headers).status_code == 422


def test_a_callback_that_makes_no_sense_is_refused_though_it_is_signed(client: FlaskClient) -> None:
    from player.payments.signature import sign
    from player.settings import settings

    for told in ({}, [], {"paymentId": "x", "status": "completed", "amount": "1", "reference": "r"}):
        body = json.dumps(told).encode()
        headers = {"X-Payment-Signature": sign(settings().payment_secret, "payment-callback", body)}
        assert client.post(CALLBACK, data=body, headers=headers).status_code == 422
