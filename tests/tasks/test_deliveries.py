"""Webhook deliveries against a real HTTP server: signed, logged, retried from rows, written once."""

from __future__ import annotations

import hashlib
import hmac
import http.server
from uuid import UUID

import pytest
from sqlalchemy import text

from models.credentials import issue_api_key
from models.deliveries import DeliveryAttempt, DeliveryStatus, announce, claim, conclude
from models.session import database_now, transaction
from models.settings import settings
from protocol.webhook import standard_signature
from tasks.deliveries import deliver
from tests.factories import an_operator, rows
from tests.receiver import Receiver

pytestmark = pytest.mark.usefixtures("house")


def a_delivery(url: str | None) -> tuple[str, str]:
    """An operator with this webhook, and a delivery to it; returns the delivery's id and the API key."""
    operator_id = an_operator("a")
    with transaction() as session:
        key = issue_api_key(session, operator_id)
        session.execute(text("UPDATE operators SET webhook_url = :url"), {"url": url})
        [delivery] = announce(session, "round.sealed", [operator_id], None, {"sealedCount": 3})
    return str(delivery), key


def status_of(delivery: str) -> tuple[str, int, str | None]:
    return rows("SELECT status, attempts, error_class FROM deliveries WHERE id = :d", d=delivery)[0]  # type: ignore[return-value]


def make_due() -> None:
    with transaction() as session:
        session.execute(text("UPDATE deliveries SET due_at = now() WHERE due_at IS NOT NULL"))


def test_it_is_sent_once_signed_both_ways_and_logged(receiver: Receiver) -> None:
    delivery, key = a_delivery(receiver.url)
    assert deliver(delivery) is True
    assert deliver(delivery) is False
    [(headers, body)] = receiver.requests
    assert body == bytes(rows("SELECT body FROM deliveries")[0][0])
    assert headers["X-Service-Signature"] == hmac.new(key.encode(), body, hashlib.sha256).hexdigest()
    assert headers["X-Service-Event"] == "round.sealed"
    assert headers["X-Service-Delivery"] == headers["webhook-id"] == delivery
    stamp = int(headers["webhook-timestamp"])
    assert headers["webhook-signature"] == standard_signature(delivery, stamp, body, key)
    assert status_of(delivery) == ("delivered", 1, None)
    assert rows("SELECT number, status_code, error_class, url, response_body FROM delivery_attempts") == [
        (1, 200, None, receiver.url, "thanks�")
    ]


def test_a_failure_is_tried_three_times_under_one_id_and_then_given_up(receiver: Receiver) -> None:
    receiver.answers = [(500, {}), (204, {}), (302, {"Location": receiver.url}), (200, {})]
    delivery, _ = a_delivery(receiver.url)
    for _ in range(4):
        deliver(delivery)
        make_due()
    assert [headers["X-Service-Delivery"] for headers, _ in receiver.requests] == [delivery] * 3
    assert status_of(delivery) == ("failed", 3, "status_3xx")
    found = rows("SELECT number, status_code, error_class FROM delivery_attempts ORDER BY number")
    assert found == [(1, 500, "status_5xx"), (2, 204, "status_2xx"), (3, 302, "status_3xx")]
    assert rows("SELECT due_at, finished_at IS NOT NULL FROM deliveries") == [(None, True)]


def test_it_is_not_tried_again_before_its_time(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBHOOK_BASE_SECONDS", "30")
    settings.cache_clear()
    receiver.answers = [(503, {"Retry-After": "600"})]
    delivery, _ = a_delivery(receiver.url)
    deliver(delivery)
    assert deliver(delivery) is False
    [(wait,)] = rows("SELECT extract(epoch FROM due_at - now()) FROM deliveries")
    assert 590 < wait <= 600


def test_who_recovers_is_reached(receiver: Receiver) -> None:
    receiver.answers = [(500, {})]
    delivery, _ = a_delivery(receiver.url)
    deliver(delivery)
    make_due()
    deliver(delivery)
    assert status_of(delivery) == ("delivered", 2, None)


@pytest.mark.parametrize(
    ("url", "error_class"),
    [
        (None, "no_endpoint"),
        ("http://127.0.0.1:1/", "connect"),
        ("http://10.0.0.1/", "refused_address"),
        ("http://169.254.169.254/latest/meta-data", "refused_address"),
        ("http://[::ffff:10.0.0.1]/", "refused_address"),
        ("http://nowhere.invalid/", "dns"),
        ("ftp://127.0.0.1/", "refused_address"),
    ],
)
def test_why_nothing_could_be_sent_is_said(url: str | None, error_class: str) -> None:
    delivery, _ = a_delivery(url)
    assert deliver(delivery) is True
    assert status_of(delivery) == ("pending", 1, error_class)


def test_outside_the_sandbox_nothing_on_this_machine_is_called(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    delivery, _ = a_delivery(receiver.url)
    monkeypatch.setenv("SANDBOX", "0")
    settings.cache_clear()
    deliver(delivery)
    assert receiver.requests == []
    assert status_of(delivery)[2] == "refused_address"


def test_a_receiver_that_hangs_is_cut_off(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBHOOK_TIMEOUT_SECONDS", "0.2")
    settings.cache_clear()
    silent = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)  # accepts, never answers
    delivery, _ = a_delivery(f"http://127.0.0.1:{silent.server_address[1]}/")
    deliver(delivery)
    silent.server_close()
    assert status_of(delivery)[2] == "timeout"


def test_a_result_that_comes_after_the_lease_is_not_written() -> None:
    delivery, _ = a_delivery(None)
    with transaction() as session:
        late = claim(session, UUID(delivery), lease_seconds=0)
        assert late is not None
        session.expunge(late)
    with transaction() as session:
        assert claim(session, UUID(delivery), lease_seconds=60) is not None
    with transaction() as session:
        attempt = DeliveryAttempt(
            delivery_id=late.id, number=1, started_at=database_now(session), duration_ms=1, url="x"
        )
        assert not conclude(session, late, attempt, status=DeliveryStatus.DELIVERED, retry_in_seconds=None)
    assert status_of(delivery)[0] == "pending"
    assert rows("SELECT count(*) FROM delivery_attempts") == [(0,)]


def test_a_claimed_delivery_is_nobody_elses_until_the_lease_is_over() -> None:
    delivery, _ = a_delivery(None)
    with transaction() as session:
        assert claim(session, UUID(delivery), lease_seconds=60) is not None
    with transaction() as session:
        assert claim(session, UUID(delivery), lease_seconds=60) is None
