"""Mails to players: written in the transaction that gives the reason, sent by a worker.

The one rule kept here: a mail that may hold a secret forgets its text once it is sent, or given up.
"""

from datetime import datetime

from sqlalchemy import ForeignKey, Index, func, text
from sqlalchemy.orm import Mapped, Session, mapped_column

from player.models.base import Base, Created, Due, Number
from player.models.players import Player
from player.settings import settings


class Mail(Due, Base):
    """A mail. ``body`` is NULL once it was sent or given up; ``sent_at`` says which."""

    __tablename__ = "mails"
    __table_args__ = (Index("ix_mails_due", "due_at", postgresql_where=text("due_at IS NOT NULL")),)

    id: Mapped[Number]
    player_id: Mapped[int] = mapped_column(ForeignKey("players.id"))
    address: Mapped[str]
    subject: Mapped[str]
    body: Mapped[str | None]
    attempts: Mapped[int] = mapped_column(server_default="0")
    created_at: Mapped[Created] = mapped_column(index=True)
    sent_at: Mapped[datetime | None]


def write_mail(session: Session, row: Player, subject: str, body: str) -> None:
    """Write to a player; it goes out once this transaction is committed.

    Without SMTP_URL, which only a sandbox may do without, it is never due: it stays in the table, text and all, for
    the operator's staff to read.
    """
    due_at = func.clock_timestamp() if settings().smtp_url else None
    session.add(Mail(player_id=row.id, address=row.email, subject=subject, body=body, due_at=due_at))
    session.flush()
