"""Webhook deliveries against a real HTTP server: signed, logged, retried from rows, written once."""

from __future__ import annotations

import hashlib
import hmac
import socket

import pytest
from sqlalchemy import text

from models.credentials import issue_api_key, rotate_api_key
from models.deliveries import announce
from models.session import transaction
from models.settings import settings
from protocol.webhook import standard_signature
from tasks.sender import deliver_due
from tests.factories import an_operator, rows
from tests.receiver import Receiver, receiving

pytestmark = pytest.mark.usefixtures("house")


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries wait as long as in earnest: no second attempt slips in before a test wants it."""
    monkeypatch.setenv("WEBHOOK_BASE_SECONDS", "30")
    settings.cache_clear()


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
        session.execute(text("UPDATE webhook_endpoints SET open_until = now() WHERE open_until IS NOT NULL"))


def test_it_is_sent_once_signed_both_ways_and_logged(receiver: Receiver) -> None:
    delivery, key = a_delivery(receiver.url)
    assert deliver_due() == 1
    assert deliver_due() == 0
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
    assert [(deliver_due(), make_due())[0] for _ in range(4)] == [1, 1, 1, 0]
    assert [headers["X-Service-Delivery"] for headers, _ in receiver.requests] == [delivery] * 3
    assert status_of(delivery) == ("failed", 3, "status_3xx")
    found = rows("SELECT number, status_code, error_class FROM delivery_attempts ORDER BY number")
    assert found == [(1, 500, "status_5xx"), (2, 204, "status_2xx"), (3, 302, "status_3xx")]
    assert rows("SELECT due_at, finished_at IS NOT NULL FROM deliveries") == [(None, True)]


def test_it_is_not_tried_again_before_its_time(receiver: Receiver) -> None:
    receiver.answers = [(503, {"Retry-After": "600"})]
    a_delivery(receiver.url)
    assert deliver_due() == 1
    assert deliver_due() == 0
    [(wait,)] = rows("SELECT extract(epoch FROM due_at - now()) FROM deliveries")
    assert 590 < wait <= 600


def test_who_recovers_is_reached(receiver: Receiver) -> None:
    receiver.answers = [(500, {})]
    delivery, _ = a_delivery(receiver.url)
    deliver_due()
    make_due()
    deliver_due()
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
    assert deliver_due() == 1
    assert status_of(delivery) == ("pending", 1, error_class)


def test_outside_the_sandbox_nothing_on_this_machine_is_called(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    delivery, _ = a_delivery(receiver.url)
    monkeypatch.setenv("SANDBOX", "0")
    settings.cache_clear()
    deliver_due()
    assert receiver.requests == []
    assert status_of(delivery)[2] == "refused_address"


def test_a_receiver_that_hangs_is_cut_off(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBHOOK_TIMEOUT_SECONDS", "0.2")
    settings.cache_clear()
    with socket.create_server(("127.0.0.1", 0)) as silent:  # connects, and never answers
        delivery, _ = a_delivery(f"http://127.0.0.1:{silent.getsockname()[1]}/")
        deliver_due()
    assert status_of(delivery)[2] == "timeout"


def test_the_rest_of_the_attempts_goes_to_the_new_address_signed_with_the_new_key(receiver: Receiver) -> None:
    receiver.answers = [(500, {})]
    delivery, first_key = a_delivery(receiver.url)
    deliver_due()
    with receiving() as moved_to:
        with transaction() as session:
            session.execute(text("UPDATE operators SET webhook_url = :url"), {"url": moved_to.url})
            second_key, _ = rotate_api_key(session, "op_a", 0)
        make_due()
        assert deliver_due() == 1
        [(headers, body)] = moved_to.requests
    assert len(receiver.requests) == 1
    assert second_key != first_key
    assert headers["X-Service-Signature"] == hmac.new(second_key.encode(), body, hashlib.sha256).hexdigest()
    assert headers["webhook-id"] == receiver.requests[0][0]["webhook-id"] == delivery
    assert body == receiver.requests[0][1]
    assert status_of(delivery) == ("delivered", 2, None)


def test_when_our_own_dns_is_silent_nobody_loses_an_attempt(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        monkeypatch.setenv("DNS_SERVERS", f"127.0.0.1:{silent.getsockname()[1]}")
        settings.cache_clear()
        delivery, _ = a_delivery("http://receiver.example/hook")
        assert deliver_due() == 0
    assert status_of(delivery) == ("pending", 0, None)
    assert rows("SELECT count(*) FROM delivery_attempts") == [(0,)]
    assert rows("SELECT failures FROM webhook_endpoints") == [(0,)]
    assert rows("SELECT due_at > now(), lease_ends_at FROM deliveries") == [(True, None)]
    assert rows("SELECT label, count FROM webhook_tallies WHERE kind = 'outcome'") == [("ours", 1)]


def test_every_attempt_says_how_long_what_took_and_whom_it_called(receiver: Receiver) -> None:
    receiver.answers = [(503, {})]
    a_delivery(f"{receiver.url}?token=sesame")
    deliver_due()
    [(phases, peer, reused, url)] = rows("SELECT phases_ms, peer, reused, url FROM delivery_attempts")
    assert set(phases) == {"dns", "connect", "send", "wait", "receive"}
    assert all(ms >= 0 for ms in phases.values())
    assert (peer, reused) == ("127.0.0.1", False)
    assert "sesame" not in url


def test_the_tallies_count_what_is_on_record(receiver: Receiver) -> None:
    receiver.answers = [(500, {})]
    a_delivery(receiver.url)
    deliver_due()
    make_due()
    deliver_due()
    counted = {(kind, label): count for kind, label, count in rows("SELECT kind, label, count FROM webhook_tallies")}
    assert (counted["outcome", "status_5xx"], counted["outcome", "delivered"]) == (1, 1)
    assert sum(count for (kind, _), count in counted.items() if kind == "seconds") == 2
    assert sum(count for (kind, _), count in counted.items() if kind == "wait") == 1
    assert sum(count for (kind, _), count in counted.items() if kind == "connection") == 2
