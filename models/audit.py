"""The audit log: who changed what through the admin side, when and why.

The one rule kept here: the entry is written in the transaction of the change it tells of, and never altered (a
trigger).
"""

from typing import Any

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
