"""The attempt log: every attempt with its times and its peer, and with no secret, whatever the receiver sends back."""

from __future__ import annotations

import html
import json
import logging
from base64 import b64encode
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text

from app.resources.deliveries import PHASES, delivery_detail, logged_delivery
from models.credentials import issue_api_key
from models.deliveries import Delivery, announce, attempts_of
from models.session import transaction
from tasks.exchange import KEPT_BYTES
from tasks.redaction import GONE, RUN
from tasks.sender import deliver_due
from tests.factories import an_operator, rows
from tests.receiver import Receiver

pytestmark = pytest.mark.usefixtures("house")

Echo = Callable[[dict[str, str], bytes, str], bytes]


def _plainly(sent: dict[str, str], body: bytes, key: str) -> bytes:
    return "".join(f"{name}: {value}\n" for name, value in sent.items()).encode() + body + f"\nkey={key}".encode()


ECHOES: dict[str, Echo] = {
    "as it came": _plainly,
    "as JSON": lambda sent, body, key: json.dumps({"sent": sent, "body": body.decode(), "key": key}).encode(),
    "on an error page": lambda sent, body, key: f"<pre>{html.escape(_plainly(sent, body, key).decode())}".encode(),
    "in base64": lambda sent, body, key: b64encode(_plainly(sent, body, key)),
    "where it is cut": lambda sent, body, key: (
        b"x" * (KEPT_BYTES - len(_plainly(sent, body, key)) + 40) + _plainly(sent, body, key)
    ),
    "without an end": lambda sent, body, key: _plainly(sent, body, key) * 300,
    "in what is no text": lambda sent, body, key: b"\xff\xfe\0" + _plainly(sent, body, key) + b"\xff",
}  # fmt: skip


def registered(url: str) -> str:
    """An operator op_a with this webhook; returns its API key."""
    operator_id = an_operator("a")
    with transaction() as session:
        session.execute(text("UPDATE operators SET webhook_url = :url"), {"url": url})
        return issue_api_key(session, operator_id)


def delivered(event: str = "round.sealed") -> UUID:
    """A delivery to op_a, after its first attempt."""
    with transaction() as session:
        [delivery] = announce(session, event, ["op_a"], None, {"roundId": 7})
    assert deliver_due() == 1
    return delivery


def views(delivery: UUID) -> tuple[dict[str, Any], dict[str, Any]]:
    """The delivery as those who run it see it, and as its operator does."""
    with transaction() as session:
        row = session.get_one(Delivery, delivery)
        attempts = attempts_of(session, [delivery])[delivery]
        return delivery_detail(row, attempts), logged_delivery(row, attempts)


@pytest.mark.parametrize("echo", ECHOES)
def test_what_an_echoing_receiver_sends_back_is_kept_without_key_and_signatures(
    receiver: Receiver, echo: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    key = registered(receiver.url)
    receiver.says = lambda sent, body: ECHOES[echo](sent, body, key)
    shown, logged = views(delivered())
    [(sent, _)] = receiver.requests
    secrets = (key, sent["X-Service-Signature"], sent["webhook-signature"].removeprefix("v1,"))
    told = [str(vars(record)) for record in caplog.records]
    for text_kept in (json.dumps(shown), json.dumps(logged), str(rows("SELECT * FROM delivery_attempts")), *told):
        assert not [s for s in secrets for at in range(len(s) - RUN + 1) if s[at : at + RUN] in text_kept]
    [attempt] = shown["attempts"]
    assert GONE in attempt["responseBody"]
    assert len(attempt["responseBody"].encode()) <= KEPT_BYTES


def test_an_attempt_says_where_its_time_went_and_whom_it_reached(receiver: Receiver) -> None:
    registered(receiver.url + "?token=open-sesame")
    receiver.answers = [(410, {}), (200, {})]
    shown, logged = views(delivered())
    [attempt] = shown["attempts"]
    assert logged["attempts"] == shown["attempts"]
    assert (attempt["url"], attempt["statusCode"]) == (f"{receiver.url}?{GONE}", 410)
    assert (attempt["peer"], attempt["connectionReused"], attempt["detail"]) == ("127.0.0.1", False, None)
    phases = attempt["phasesMs"]
    assert tuple(phases) == PHASES
    # No name, no TLS; all else took some time, and all of it together no more than the attempt.
    assert phases["tls"] is None
    assert all(phases[name] >= 0 for name in ("connect", "send", "wait", "receive"))
    assert sum(ms or 0 for ms in phases.values()) <= attempt["durationMs"] + 1


def test_what_was_not_called_has_no_phases_and_no_peer() -> None:
    registered("http://[::1")
    shown, _ = views(delivered())
    [attempt] = shown["attempts"]
    assert attempt["errorClass"] == "refused_address"
    assert (attempt["phasesMs"], attempt["peer"], attempt["connectionReused"]) == (None, None, False)
    assert attempt["detail"]
