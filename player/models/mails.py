"""Mails to players: written in the transaction that gives the reason, sent by a worker.

The one rule kept here: a mail that holds a secret forgets its text once it is sent.
"""

from datetime import datetime

from sqlalchemy import ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from player.models.base import Base, Created, Due, Number


class Mail(Due, Base):
    """A mail; ``body`` is NULL once it was sent."""

    __tablename__ = "mails"
    __table_args__ = (Index("ix_mails_due", "due_at", postgresql_where=text("due_at IS NOT NULL")),)

    id: Mapped[Number]
    player_id: Mapped[int] = mapped_column(ForeignKey("players.id"))
    address: Mapped[str]
    subject: Mapped[str]
    body: Mapped[str | None]
    attempts: Mapped[int] = mapped_column(server_default="0")
    created_at: Mapped[Created]
    sent_at: Mapped[datetime | None]
