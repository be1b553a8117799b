"""Sending mails to players, over the SMTP server of ``SMTP_URL``.

The one rule kept here: a mail goes out encrypted (``smtps://``, or STARTTLS on ``smtp://``) or not at all, unless the
server is this machine. It is tried for a day, less and less often; what is sent or given up forgets its text. A worker
killed between the server's yes and our note of it sends the mail again, under the same Message-ID.

Without SMTP_URL nothing is ever due: a sandbox keeps its mails for staff to read, and elsewhere a node does not start.
"""

import logging
import smtplib
import ssl
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.message import EmailMessage
from email.utils import format_datetime, parseaddr
from urllib.parse import SplitResult, unquote, urlsplit

import dramatiq
from sqlalchemy import func, update

from player.models.mails import Mail
from player.models.session import transaction
from player.settings import settings
from player.tasks.broker import AFTER_ALL_ELSE, OUTSIDE, broker

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=60)
TIMEOUT_SECONDS = 15.0
"""For each answer of the mail server."""
FIRST_WAIT = timedelta(seconds=30)
LONGEST_WAIT = timedelta(minutes=30)
GIVEN_UP_AFTER = timedelta(days=1)
_HERE = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class Taken:
    """A mail that is ours for the length of the lease."""

    id: int
    address: str
    subject: str
    body: str | None = field(repr=False)
    attempts: int
    created_at: datetime
    is_old: bool
    """Whether this attempt is the last."""


@dramatiq.actor(broker=broker, queue_name=OUTSIDE, priority=AFTER_ALL_ELSE)
def send_mail(mail_id: str) -> None:
    """Send one mail if it is due: take it, talk to the server, write down how that went."""
    mail = _take(int(mail_id))
    if mail is None:
        return
    try:
        deliver(str(settings().smtp_url), mail.address, composed(mail))
    except (OSError, smtplib.SMTPException) as error:
        # The error's text may quote the address, or what we sent.
        give_up = mail.is_old or is_for_good(error)
        log.warning("mail not sent", extra={"mail": mail.id, "error": type(error).__name__, "given_up": give_up})
        _not_sent(mail, give_up=give_up)
    else:
        _sent(mail.id)


def wait_before(attempt: int) -> timedelta:
    """How long after attempt number ``attempt`` (from 1) the next one begins."""
    return min(FIRST_WAIT * float(4 ** min(attempt - 1, 10)), LONGEST_WAIT)


def is_for_good(error: Exception) -> bool:
    """Whether the server said that it will never take mail for this address."""
    return isinstance(error, smtplib.SMTPRecipientsRefused) and all(
        500 <= code < 600 for code, _ in error.recipients.values()
    )


def composed(mail: Taken) -> EmailMessage:
    """The mail as it is sent. The Message-ID is the same at every attempt."""
    message = EmailMessage()
    message["From"] = settings().mail_from
    message["To"] = mail.address
    message["Subject"] = mail.subject
    message["Date"] = format_datetime(mail.created_at)
    domain = parseaddr(settings().mail_from)[1].rpartition("@")[2] or "localhost"
    message["Message-ID"] = f"<mail-{mail.id}-{int(mail.created_at.timestamp())}@{domain}>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(mail.body or "")
    return message


def deliver(smtp_url: str, address: str, message: EmailMessage) -> None:
    """Hand a mail to the server at ``smtp_url``: ``smtp://`` or ``smtps://``, with user, password and port if needed.

    :raises OSError: it cannot be reached, or it is not who it says to be.
    :raises smtplib.SMTPException: it does not take the mail, or offers no encryption.
    """
    parts = urlsplit(smtp_url)
    with _connected(parts) as server:
        if parts.scheme == "smtp":
            server.ehlo()
            if server.has_extn("starttls"):
                server.starttls(context=ssl.create_default_context())
            elif parts.hostname not in _HERE:
                raise smtplib.SMTPNotSupportedError("the mail server offers no STARTTLS")
        if parts.username:
            server.login(unquote(parts.username), unquote(parts.password or ""))
        server.send_message(message, to_addrs=[address])


def _connected(parts: SplitResult) -> smtplib.SMTP:
    host, here = str(parts.hostname), urlsplit(settings().public_url).hostname
    if parts.scheme == "smtps":
        context = ssl.create_default_context()
        return smtplib.SMTP_SSL(host, parts.port or 465, local_hostname=here, timeout=TIMEOUT_SECONDS, context=context)
    return smtplib.SMTP(host, parts.port or 587, local_hostname=here, timeout=TIMEOUT_SECONDS)


def _take(mail_id: int) -> Taken | None:
    now = func.clock_timestamp()
    taken = (
        update(Mail)
        .where(Mail.id == mail_id, Mail.due_at <= now)
        .values(due_at=now + LEASE, attempts=Mail.attempts + 1)
        .returning(
            Mail.id, Mail.address, Mail.subject, Mail.body, Mail.attempts, Mail.created_at,
            Mail.created_at <= now - GIVEN_UP_AFTER,
        )
    )  # fmt: skip
    with transaction() as session:
        found = session.execute(taken).first()
    return None if found is None else Taken(*found)


def _sent(mail_id: int) -> None:
    with transaction() as session:
        session.execute(
            update(Mail).where(Mail.id == mail_id).values(sent_at=func.clock_timestamp(), body=None, due_at=None)
        )


def _not_sent(mail: Taken, *, give_up: bool) -> None:
    then = (
        {"due_at": None, "body": None} if give_up else {"due_at": func.clock_timestamp() + wait_before(mail.attempts)}
    )
    with transaction() as session:
        session.execute(
            update(Mail)
            # Whoever took it since, because our lease was over, writes how it went.
            .where(Mail.id == mail.id, Mail.attempts == mail.attempts, Mail.sent_at.is_(None))
            .values(then)
        )
