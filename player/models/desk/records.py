"""What the node did and heard: the audit log, chores, the coordinator's views, webhooks received, mails to players.

One rule: newest first, one page at a time.
"""

from sqlalchemy import select
from sqlalchemy.orm import Session

from player.models.chores import Chore, View
from player.models.mails import Mail
from player.models.staff import AuditEntry
from player.models.webhooks import Webhook


def audit(
    session: Session, limit: int, offset: int, who: str | None, action: str | None, subject: str | None
) -> list[AuditEntry]:
    """A page of the audit log, newest first."""
    wanted = select(AuditEntry).order_by(AuditEntry.id.desc()).limit(limit).offset(offset)
    if who is not None:
        wanted = wanted.where(AuditEntry.who == who)
    if action is not None:
        wanted = wanted.where(AuditEntry.action == action)
    if subject is not None:
        wanted = wanted.where(AuditEntry.subject == subject)
    return list(session.scalars(wanted))


def chores(session: Session) -> list[Chore]:
    """Every chore, by name."""
    return list(session.scalars(select(Chore).order_by(Chore.kind)))


def views(session: Session) -> list[View]:
    """What the coordinator last showed us, by name."""
    return list(session.scalars(select(View).order_by(View.name)))


def find_webhooks(
    session: Session, limit: int, offset: int, event: str | None, round_id: int | None, handled: bool | None
) -> list[Webhook]:
    """A page of the webhooks we received, newest first."""
    wanted = select(Webhook).order_by(Webhook.received_at.desc(), Webhook.delivery_id).limit(limit).offset(offset)
    if event is not None:
        wanted = wanted.where(Webhook.event == event)
    if round_id is not None:
        wanted = wanted.where(Webhook.round_id == round_id)
    if handled is not None:
        wanted = wanted.where(Webhook.handled_at.is_not(None) if handled else Webhook.handled_at.is_(None))
    return list(session.scalars(wanted))


def find_mails(session: Session, limit: int, offset: int, player_id: int | None, sent: bool | None) -> list[Mail]:
    """A page of mails, newest first."""
    wanted = select(Mail).order_by(Mail.id.desc()).limit(limit).offset(offset)
    if player_id is not None:
        wanted = wanted.where(Mail.player_id == player_id)
    if sent is not None:
        wanted = wanted.where(Mail.sent_at.is_not(None) if sent else Mail.sent_at.is_(None))
    return list(session.scalars(wanted))
