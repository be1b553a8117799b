"""Idempotency keys: the answers to requests that must not be carried out twice.

The one rule kept here: a key and its answer are written in the transaction of the effect, so either both are there or
neither is, and two requests with one key wait for each other.
"""

from typing import Any

from sqlalchemy import ForeignKey, LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from player.models.base import Base, Created


class IdempotencyKey(Base):
    """One ``Idempotency-Key`` of a player, what was asked under it (method, path and body, hashed) and the answer."""

    __tablename__ = "idempotency_keys"

    player_id: Mapped[int] = mapped_column(ForeignKey("players.id"), primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    request_digest: Mapped[bytes] = mapped_column(LargeBinary)
    status: Mapped[int | None]
    answer: Mapped[dict[str, Any] | None]
    created_at: Mapped[Created]
