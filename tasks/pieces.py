"""Pieces of work inside a round's state, done in parallel by whichever worker is called.

The one rule kept here: a piece and its result are one transaction; killed in the middle, it was never begun.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from sqlalchemy.orm import Session

from models.session import transaction
from models.work import Kind, Piece, finish, take
from tasks.assessing import assess
from tasks.bell import Bell, answers, ring_after_commit
from tasks.drawing import match
from tasks.sealing import recount
from tasks.tabulating import tabulate

WORK: Final[Mapping[Kind, Callable[[Session, Piece], dict[str, Any]]]] = MappingProxyType(
    {Kind.RECOUNT: recount, Kind.LIABILITY: assess, Kind.MATCH: match, Kind.TABULATE: tabulate}
)


@answers(Bell.PIECE)
def do_piece(piece_id: int) -> bool:
    """Do one piece; False when it was done before or is being done. The last of its kind calls for the round."""
    with transaction() as session:
        piece = take(session, piece_id)
        if piece is None:
            return False
        result = WORK[Kind(piece.kind)](session, piece)
        if finish(session, piece, result):
            ring_after_commit(session, Bell.ROUND, [piece.round_id])
        return True
