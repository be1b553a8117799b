"""The pieces of work inside a round's state: recounts and second tabulations by operator, matches by shards, and a
round's worst case, which stands under its first operator.

The one rule kept here: a piece is done once, in one transaction, under its row's lock; the last piece wakes the round.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKeyConstraint, Index, UniqueConstraint, func, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Mapped, Session, mapped_column

from models.base import Base, Due, Identifier
from models.rounds import wake_round


class Kind(StrEnum):
    """What a piece does to some of the tickets of one round."""

    RECOUNT = "recount"
    LIABILITY = "liability"
    MATCH = "match"
    TABULATE = "tabulate"


class Piece(Due, Base):
    """One piece of work. ``due_at`` is NULL once done; ``result`` then says what came out.

    It is about one operator's tickets; or, where ``operator_id`` is NULL, about a shard of everybody's: ``shard`` is
    its number, from 0, and ``part`` says which tickets those are, as whoever planned it understands it.
    """

    __tablename__ = "round_pieces"
    __table_args__ = (
        ForeignKeyConstraint(["round_id", "operator_id"], ["participations.round_id", "participations.operator_id"]),
        UniqueConstraint("round_id", "kind", "operator_id"),
        UniqueConstraint("round_id", "kind", "shard"),
        CheckConstraint(
            "num_nonnulls(operator_id, shard) = 1 AND (shard IS NULL) = (part IS NULL)", name="one_subject"
        ),
        # A release from before there were shards would take one for nobody's tickets, and finish it with nothing found.
        CheckConstraint("shard IS NULL OR due_at IS NOT NULL OR result <> '{}'", name="shard_with_a_result"),
        Index("ix_round_pieces_ring", "ring_at", postgresql_where=text("due_at IS NOT NULL")),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    round_id: Mapped[int]
    kind: Mapped[str]
    # Not optional to those who do pieces by operator, and they are all but one.
    operator_id: Mapped[Identifier] = mapped_column(nullable=True)
    shard: Mapped[int | None]
    part: Mapped[dict[str, Any] | None]
    result: Mapped[dict[str, Any] | None]


def plan(session: Session, round_id: int, kind: Kind, operator_ids: Iterable[str]) -> list[int]:
    """Write one piece an operator, due now; those already planned are left alone. Returns the new ids."""
    return _plan(session, round_id, kind, [{"operator_id": operator_id} for operator_id in operator_ids])


def plan_shards(session: Session, round_id: int, kind: Kind, parts: Sequence[Mapping[str, Any]]) -> list[int]:
    """The same with one piece for each of these parts of all tickets."""
    return _plan(session, round_id, kind, [{"shard": shard, "part": dict(part)} for shard, part in enumerate(parts)])


def _plan(session: Session, round_id: int, kind: Kind, subjects: Sequence[Mapping[str, Any]]) -> list[int]:
    if not subjects:
        return []
    common = {"round_id": round_id, "kind": kind.value, "due_at": func.clock_timestamp()}
    new = insert(Piece).values([common | dict(subject) for subject in subjects])
    return list(session.scalars(new.on_conflict_do_nothing().returning(Piece.id)))


def take(session: Session, piece_id: int) -> Piece | None:
    """Take a piece to do it; None when it is done or somebody else is at it."""
    return session.scalars(
        select(Piece).where(Piece.id == piece_id, Piece.due_at.is_not(None)).with_for_update(skip_locked=True)
    ).first()


def finish(session: Session, piece: Piece, result: dict[str, Any]) -> bool:
    """Mark a piece done; True when it was the last of its kind, in which case the round was woken.

    Two last pieces finishing at once would each see the other undone, so they take turns at a lock.
    """
    _take_turns(session, piece)
    piece.result, piece.due_at = result, None
    session.flush()
    if remaining(session, piece.round_id, Kind(piece.kind)):
        return False
    wake_round(session, piece.round_id)
    return True


def last_of_its_kind(session: Session, piece: Piece) -> bool:
    """Whether a piece that is about to be finished is the last; no other finishes until this transaction ends."""
    _take_turns(session, piece)
    return remaining(session, piece.round_id, Kind(piece.kind)) == 1


def _take_turns(session: Session, piece: Piece) -> None:
    session.execute(select(func.pg_advisory_xact_lock(func.hashtext(f"round_pieces:{piece.round_id}:{piece.kind}"))))


def remaining(session: Session, round_id: int, kind: Kind) -> int:
    """How many pieces of a kind are still to do."""
    return session.scalars(
        select(func.count()).where(Piece.round_id == round_id, Piece.kind == kind.value, Piece.due_at.is_not(None))
    ).one()


def results(session: Session, round_id: int, kind: Kind) -> dict[str, dict[str, Any]]:
    """What the finished pieces of a kind found, by operator."""
    rows = session.execute(
        select(Piece.operator_id, Piece.result)
        .where(Piece.round_id == round_id, Piece.kind == kind.value, Piece.result.is_not(None))
        .order_by(Piece.operator_id)
    )
    return {operator_id: result for operator_id, result in rows if result is not None}
