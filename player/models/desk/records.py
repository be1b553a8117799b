"""The audit log, the chores, and the letters in both directions: webhooks received, mails to players.

One rule: newest first, one page at a time.
"""

from sqlalchemy import select
from sqlalchemy.orm import Session

from player.models.chores import Chore
from player.models.staff import AuditEntry


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
