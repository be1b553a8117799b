"""The operator's staff: their API keys, and what was done with them.

The one rule kept here: every change made by staff is in the audit log, in the same transaction, with who and why.
"""

from datetime import datetime
from secrets import token_hex
from typing import Any

from sqlalchemy import LargeBinary, func, select
from sqlalchemy.orm import Mapped, Session, mapped_column

from player.models.base import Base, Created, Number
from player.models.secrets import digest, fresh
from protocol.errors import Conflict, NotFound


class StaffKey(Base):
    """An API key of the admin API, shown once when it was made."""

    __tablename__ = "staff_keys"

    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    digest: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[Created]
    revoked_at: Mapped[datetime | None]


class AuditEntry(Base):
    """One thing that staff did."""

    __tablename__ = "audit_entries"

    id: Mapped[Number]
    at: Mapped[Created]
    who: Mapped[str]
    action: Mapped[str]
    subject: Mapped[str]
    reason: Mapped[str]
    details: Mapped[dict[str, Any] | None]


def issue_staff_key(session: Session, name: str) -> tuple[StaffKey, str]:
    """A new key for ``name`` (a person, for the audit log) and its secret, which cannot be shown again.

    :raises Conflict: there is, or was, a key of that name.
    """
    if session.scalars(select(StaffKey.id).where(StaffKey.name == name)).first() is not None:
        raise Conflict(f"there is a staff key named {name} already; names are not used twice", code="name_taken")
    key_id = token_hex(4)
    key = f"ok_{key_id}_{fresh()}"
    row = StaffKey(id=key_id, name=name, digest=digest(key))
    session.add(row)
    session.flush()
    return row, key


def staff_keys(session: Session) -> list[StaffKey]:
    """Every key, revoked ones too, oldest first."""
    return list(session.scalars(select(StaffKey).order_by(StaffKey.created_at, StaffKey.id)))


def revoke(session: Session, key_id: str) -> StaffKey:
    """Take a key out of force. A key that is so already stays as it is.

    :raises NotFound: no such key.
    """
    row = session.get(StaffKey, key_id, with_for_update=True)
    if row is None:
        raise NotFound("no such staff key")
    if row.revoked_at is None:
        row.revoked_at = session.scalars(select(func.clock_timestamp())).one()
    return row


def note(
    session: Session, who: str, action: str, subject: str, reason: str, details: dict[str, Any] | None = None
) -> None:
    """Write into the audit log who did what to what (``player:7``, ``kyc:3``) and why, in the change's transaction."""
    session.add(AuditEntry(who=who, action=action, subject=subject, reason=reason, details=details))
