"""Webhooks received from the coordinator: written down at once, worked on later.

The one rule kept here: a delivery is received once, whatever the number of its attempts.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import Index, text
from sqlalchemy.orm import Mapped, mapped_column

from player.models.base import Base, Created, Due


class Webhook(Due, Base):
    """One delivery, by the id that every attempt at it carries."""

    __tablename__ = "webhooks"
    __table_args__ = (
        Index("ix_webhooks_due", "due_at", postgresql_where=text("due_at IS NOT NULL")),
        Index("ix_webhooks_received_at", "received_at"),
    )

    delivery_id: Mapped[str] = mapped_column(primary_key=True)
    event: Mapped[str]
    round_id: Mapped[int | None]
    body: Mapped[dict[str, Any]]
    received_at: Mapped[Created]
    repeats: Mapped[int] = mapped_column(server_default="0")
    handled_at: Mapped[datetime | None]
