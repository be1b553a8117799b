"""Mails: sent once over a real SMTP conversation, tried again when that fails, forgotten when it is over."""

from __future__ import annotations

import email
import email.policy
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from flask.testing import FlaskClient
from sqlalchemy import select, text, update

from player.models.mails import Mail, write_mail
from player.models.players import player
from player.models.session import transaction
from player.settings import SettingsError, read_settings, settings
from tests.authorities import Authority
from tests.player.factories import a_player
from tests.player.mail_server import mail_server


def _use(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("SMTP_URL", url)
    settings.cache_clear()


def _written() -> int:
    """A mail to Ana, whose text holds a secret; its id."""
    player_id = a_player(email="Ana@example.com").id
    with transaction() as session:
        write_mail(session, player(session, player_id), "Grüße", "the token is s3cret\n.\nbye\n")
        return session.scalars(select(Mail.id)).one()


def _send(mail_id: int) -> Mail:
    from player.tasks.mails import send_mail

    send_mail(str(mail_id))
    with transaction() as session:
        return session.get_one(Mail, mail_id)


def _due_again(mail_id: int) -> None:
    with transaction() as session:
        session.execute(update(Mail).where(Mail.id == mail_id).values(due_at=text("now()")))


def test_a_mail_is_sent_once_and_its_text_forgotten(node: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from player.tasks.due import ring_due

    with mail_server() as server:
        _use(monkeypatch, f"smtp://us:p%40ss@127.0.0.1:{server.port}")
        mail_id = _written()
        assert ring_due() >= 1
        sent = _send(mail_id)
        assert (sent.body, sent.due_at, sent.attempts) == (None, None, 1)
        assert sent.sent_at is not None
        _send(mail_id)
    (raw,) = server.mails
    mail = email.message_from_string(raw, policy=email.policy.default)
    assert (mail["To"], mail["From"], mail["Subject"]) == ("Ana@example.com", "lottery@localhost", "Grüße")
    assert mail.get_content().replace("\r\n", "\n") == "the token is s3cret\n..\nbye\n"
    assert mail["Message-ID"].startswith(f"<mail-{mail_id}-")
    assert any(line.startswith("AUTH") for line in server.heard)


def test_a_mail_that_two_workers_are_called_to_is_sent_once(node: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with mail_server() as server:
        _use(monkeypatch, f"smtp://127.0.0.1:{server.port}")
        mail_id = _written()
        with ThreadPoolExecutor(4) as four:
            list(four.map(_send, [mail_id] * 4))
    assert len(server.mails) == 1


def test_what_the_server_does_not_take_now_is_tried_again_later(node: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with mail_server() as server:
        server.to_recipients = "451 the mailbox is busy"
        _use(monkeypatch, f"smtp://127.0.0.1:{server.port}")
        mail_id = _written()
        waiting = _send(mail_id)
        assert (waiting.attempts, waiting.sent_at) == (1, None)
        assert waiting.due_at is not None
        assert waiting.due_at > waiting.created_at + timedelta(seconds=20)
        assert _send(mail_id).attempts == 1
        server.to_recipients = "250 fine"
        _due_again(mail_id)
        assert _send(mail_id).sent_at is not None
    assert len(server.mails) == 1


def test_a_server_that_is_away_is_waited_for_a_day(node: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with mail_server() as server:
        pass
    _use(monkeypatch, f"smtp://127.0.0.1:{server.port}")
    mail_id = _written()
    assert _send(mail_id).due_at is not None
    with transaction() as session:
        session.execute(update(Mail).values(due_at=text("now()"), created_at=text("now() - interval '1 day'")))
    given_up = _send(mail_id)
    assert (given_up.due_at, given_up.body, given_up.sent_at) == (None, None, None)


def test_an_address_that_is_refused_for_good_is_given_up(node: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with mail_server() as server:
        server.to_recipients = "550 nobody here"
        _use(monkeypatch, f"smtp://127.0.0.1:{server.port}")
        given_up = _send(_written())
    assert (given_up.due_at, given_up.body, given_up.sent_at) == (None, None, None)


def test_waiting_grows_from_half_a_minute_to_half_an_hour(node: str) -> None:
    from player.tasks.mails import wait_before

    assert [wait_before(n).total_seconds() for n in (1, 2, 3, 4, 5, 1000)] == [30, 120, 480, 1800, 1800, 1800]


@pytest.mark.parametrize("scheme", ["smtp", "smtps"])
def test_a_mail_goes_out_encrypted_to_a_server_that_is_who_it_says(
    node: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, scheme: str
) -> None:
    authority = Authority(tmp_path)
    context = authority.context("127.0.0.1")
    with mail_server(**{"tls" if scheme == "smtps" else "starttls": context}) as server:
        _use(monkeypatch, f"{scheme}://127.0.0.1:{server.port}")
        mail_id = _written()
        assert _send(mail_id).sent_at is None
        monkeypatch.setenv("SSL_CERT_FILE", authority.ca_file)
        _due_again(mail_id)
        assert _send(mail_id).sent_at is not None
    assert len(server.mails) == 1


def test_nothing_is_said_in_the_clear_to_a_server_elsewhere(node: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Another name for this machine, as far as the rule is concerned.
    monkeypatch.setattr("player.tasks.mails._HERE", ())
    with mail_server() as server:
        _use(monkeypatch, f"smtp://us:pass@127.0.0.1:{server.port}")
        assert _send(_written()).sent_at is None
    assert not [line for line in server.heard if line.startswith(("AUTH", "MAIL"))]


def test_a_sandbox_without_a_server_keeps_its_mails_and_nobody_else_starts_without(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    _written()
    with transaction() as session:
        kept = session.scalars(select(Mail)).one()
    assert (kept.due_at, kept.sent_at) == (None, None)
    assert "s3cret" in (kept.body or "")
    monkeypatch.setenv("SANDBOX", "0")
    for url in ("", "mail.example.com", "http://example.com", "smtp://a b", "smtp://", "smtp://host:port"):
        monkeypatch.setenv("SMTP_URL", url)
        with pytest.raises(SettingsError, match="SMTP_URL"):
            read_settings()
    monkeypatch.setenv("SMTP_URL", "smtps://us:secret@mail.example.com")
    assert "secret" not in repr(read_settings())


def test_the_clock_calls_a_worker_that_knows_how(node: str) -> None:
    from player.tasks.actors import broker
    from player.tasks.due import SOURCES

    assert "send_mail" in broker.get_declared_actors()
    assert "send_mail" in {source.actor for source in SOURCES}
