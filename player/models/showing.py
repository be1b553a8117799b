"""What is shown to everybody: the round on sale, the jackpot, the results of past rounds.

The one rule kept here: it is read from what the worker wrote down; nothing here asks the coordinator.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from player.models.chores import View
from player.models.prizes import Prize
from player.models.rounds import Round, on_sale
from protocol.errors import NotFound

JACKPOT = "jackpot"
"""The name of the coordinator's jackpot among its views."""


@dataclass(frozen=True)
class Result:
    """A round that was drawn, and how many prizes of each tier our own players won in it."""

    round: Round
    draw: dict[str, Any]
    winners: dict[int, int]


def round_on_sale(session: Session) -> Round:
    """The round that tickets are sold for now.

    :raises NotFound: none is on sale.
    """
    found = on_sale(session)
    if found is None:
        raise NotFound("no round is on sale at the moment", code="no_open_round")
    return found


def jackpot_view(session: Session) -> View | None:
    """The coordinator's jackpot as it was when we last asked; None before we first did."""
    return session.get(View, JACKPOT)


def results(session: Session, limit: int, offset: int) -> list[Result]:
    """A page of the rounds that were drawn, newest first."""
    drawn = select(Round).where(Round.draw.is_not(None)).order_by(Round.id.desc())
    return _with_winners(session, session.scalars(drawn.limit(limit).offset(offset)).all())


def result(session: Session, round_id: int) -> Result:
    """One round that was drawn.

    :raises NotFound: we know no such round, or it was not drawn yet.
    """
    found = session.get(Round, round_id)
    if found is None or found.draw is None:
        raise NotFound("no such round was drawn")
    return _with_winners(session, [found])[0]


def _with_winners(session: Session, rounds: Sequence[Round]) -> list[Result]:
    counted = select(Prize.round_id, Prize.tier, func.count()).where(Prize.round_id.in_([each.id for each in rounds]))
    winners: dict[int, dict[int, int]] = {}
    for round_id, tier, count in session.execute(counted.group_by(Prize.round_id, Prize.tier)):
        winners.setdefault(round_id, {})[tier] = count
    return [Result(each, each.draw, winners.get(each.id, {})) for each in rounds if each.draw is not None]
