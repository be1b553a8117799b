"""The operator's staff: their API keys, and what was done with them.

The one rule kept here: every change made by staff is in the audit log, in the same transaction, with who and why.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from player.models.base import Base, Created, Number


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
