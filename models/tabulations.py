"""What came of the second tabulations: who agrees, what is wrong, and doing them again.

The one rule kept here: a result is the piece's own. It is replaced only by doing the piece again, which a human asks
for.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from sqlalchemy import func, or_, select, update
from sqlalchemy.orm import Session

from models.archive_copies import DAMAGED, MISSING
from models.rounds import Round
from models.work import Kind, Piece
from protocol.errors import Conflict
from protocol.lifecycle import State


class Fault(StrEnum):
    """What keeps a round from being settled. The values are what the API shows."""

    ARCHIVE_MISSING = MISSING
    ARCHIVE_DAMAGED = DAMAGED
    ARCHIVE_NOT_AS_SEALED = "archive_not_as_sealed"
    ROWS_NOT_AS_ARCHIVED = "rows_not_as_archived"
    WINNERS_DIFFER = "winners_differ"


def tabulations(session: Session, round_id: int) -> list[Piece]:
    """The second tabulations of a round, by operator; none before it is drawn."""
    wanted = select(Piece).where(Piece.round_id == round_id, Piece.kind == Kind.TABULATE.value)
    return list(session.scalars(wanted.order_by(Piece.operator_id)))


def agree(found: Iterable[Mapping[str, Any]]) -> bool:
    """Whether these results, all of a round, say that it can be settled: every operator's, and the sums."""
    everything = list(found)
    return bool(everything) and all(one["agrees"] and one.get("sums", {}).get("agree", True) for one in everything)


def disagreeing_rounds(session: Session) -> int:
    """How many DRAWN rounds cannot be settled because a second tabulation disagrees."""
    return session.scalars(
        select(func.count(Round.id.distinct()))
        .join(Piece, Piece.round_id == Round.id)
        .where(
            Round.state == State.DRAWN,
            Piece.kind == Kind.TABULATE.value,
            or_(Piece.result["agrees"].as_boolean().is_(False), Piece.result["sums", "agree"].as_boolean().is_(False)),
        )
    ).one()


def tabulate_again(session: Session, row: Round) -> list[Piece]:
    """Plan all second tabulations of a round again, due now; returns them as they were, with what they had found.

    The caller holds the round.

    :raises Conflict: the round is not DRAWN, is being tabulated, or agrees.
    """
    if row.state is not State.DRAWN:
        raise Conflict(f"a round that is {row.state.value} has nothing to tabulate", code="wrong_state")
    before = tabulations(session, row.id)
    found = [piece.result for piece in before if piece.result is not None]
    if len(found) < len(before):
        raise Conflict("the round is being tabulated", code="tabulating")
    if agree(found):
        raise Conflict("the tabulations agree", code="tabulations_agree")
    for piece in before:
        session.expunge(piece)
    now = func.clock_timestamp()
    session.execute(
        update(Piece)
        .where(Piece.round_id == row.id, Piece.kind == Kind.TABULATE.value)
        .values(result=None, due_at=now, ring_at=now)
        .execution_options(synchronize_session=False)
    )
    return before
