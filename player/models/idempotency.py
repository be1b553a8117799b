"""Idempotency keys: the answers to requests that must not be carried out twice.

The one rule kept here: a key and its answer are written in the transaction of the effect, so either both are there or
neither is, and two requests with one key wait for each other.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import ForeignKey, LargeBinary, delete, func, select, update
from sqlalchemy.dialects.postgresql import JSON, insert
from sqlalchemy.orm import Mapped, Session, mapped_column

from player.models.base import Base, Created
from protocol.errors import Invalid

KEPT = timedelta(days=7)
"""How long a key stands for its first answer; after that it is a new key."""


class IdempotencyKey(Base):
    """One ``Idempotency-Key`` of a player, what was asked under it (method, path and body, hashed) and the answer."""

    __tablename__ = "idempotency_keys"

    player_id: Mapped[int] = mapped_column(ForeignKey("players.id"), primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    request_digest: Mapped[bytes] = mapped_column(LargeBinary)
    status: Mapped[int | None]
    answer: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    """JSON and not JSONB: it is given again as it was, its fields in their order."""
    created_at: Mapped[Created] = mapped_column(index=True)


@dataclass(frozen=True)
class Stored:
    """An answer given before: HTTP status and body."""

    status: int
    answer: dict[str, Any]


def take_key(session: Session, player_id: int, key: str, digest: bytes) -> Stored | None:
    """Take a key for the request with this digest; the answer that was given under it, or None: it is ours now.

    Waits for another request that holds the key, and has it if that one comes to nothing.

    :raises Invalid: code ``idempotency_key_reused``: another request was made under this key.
    """
    session.execute(
        delete(IdempotencyKey).where(
            IdempotencyKey.player_id == player_id,
            IdempotencyKey.key == key,
            IdempotencyKey.created_at < func.clock_timestamp() - KEPT,
        )
    )
    new = insert(IdempotencyKey).values(player_id=player_id, key=key, request_digest=digest)
    if session.scalars(new.on_conflict_do_nothing().returning(IdempotencyKey.key)).first() is not None:
        return None
    found = session.scalars(
        select(IdempotencyKey).where(IdempotencyKey.player_id == player_id, IdempotencyKey.key == key)
    ).one()
    if found.request_digest != digest:
        raise Invalid("this Idempotency-Key was used for another request", code="idempotency_key_reused")
    return Stored(int(found.status or 0), dict(found.answer or {}))


def keep_answer(session: Session, player_id: int, key: str, status: int, answer: Mapping[str, Any]) -> None:
    """Write down what was answered under a key that was taken in this transaction."""
    session.execute(
        update(IdempotencyKey)
        .where(IdempotencyKey.player_id == player_id, IdempotencyKey.key == key)
        .values(status=status, answer=dict(answer))
    )
