"""The audit log: who changed what through the admin side, when and why.

The one rule kept here: the entry is written in the transaction of the change it tells of, and never altered (a
trigger).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Mapped, Session, mapped_column

from models.base import Base, Created


class AuditEntry(Base):
    """One change made by an admin. ``actor`` is the key's name and id, ``subject`` what was changed."""

    __tablename__ = "audit_log"

    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[Created]
    actor: Mapped[str]
    action: Mapped[str]
    subject: Mapped[str]
    reason: Mapped[str | None]
    details: Mapped[dict[str, Any]]


def record(
    session: Session, actor: str, action: str, subject: str, reason: str | None = None, **details: object
) -> None:
    """Write one entry."""
    session.add(AuditEntry(actor=actor, action=action, subject=subject, reason=reason, details=details))


@dataclass(frozen=True)
class AuditWanted:
    """Which entries: those that fit everything that is given. ``since`` is included, ``until`` is not."""

    action: str | None = None
    subject: str | None = None
    actor: str | None = None
    since: datetime | None = None
    until: datetime | None = None


def entries(session: Session, wanted: AuditWanted, limit: int, before_id: int | None = None) -> Sequence[AuditEntry]:
    """So many entries, newest first, from below ``before_id`` on. ``actor`` is the beginning of the actor's name."""
    query = select(AuditEntry).order_by(AuditEntry.id.desc()).limit(limit)
    for column, value in ((AuditEntry.action, wanted.action), (AuditEntry.subject, wanted.subject)):
        if value is not None:
            query = query.where(column == value)
    if wanted.actor is not None:
        query = query.where(AuditEntry.actor.startswith(wanted.actor, autoescape=True))
    if wanted.since is not None:
        query = query.where(AuditEntry.at >= wanted.since)
    if wanted.until is not None:
        query = query.where(AuditEntry.at < wanted.until)
    if before_id is not None:
        query = query.where(AuditEntry.id < before_id)
    return session.scalars(query).all()
