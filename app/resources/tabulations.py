"""The second tabulation of a round as the people who run it see it: who agrees, what is wrong, where to look.

The one rule kept here: what is shown is what the tabulations wrote down when they were done; nothing is counted here.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from marshmallow import Schema, fields

from app.fields import Whole, identifier, one_of
from models.tabulations import Fault, agree
from models.work import Piece


class Verdict(StrEnum):
    """What came of comparing. ``NOT_BEGUN`` until the round is drawn."""

    NOT_BEGUN = "not_begun"
    UNDER_WAY = "under_way"
    AGREE = "agree"
    DISAGREE = "disagree"


class DifferenceSchema(Schema):
    """A ticket that one side has and the other has not, or not so. With a ``tier`` (0: the jackpot) it is a win that
    one tabulation found and the other did not; without one, the ticket itself. ``database``: the rows, and the winners
    as published; ``archive``: what was sealed.
    """

    ticketId = fields.String(required=True)
    tier = Whole(highest=5, required=True, allow_none=True)
    onlyIn = one_of(("database", "archive"), required=True)


class OperatorTabulationSchema(Schema):
    """One operator's wins as they were stored at the draw and as they were found again. ``foundWins`` is null when
    nothing could be counted; ``differences`` are the first ten of each kind.
    """

    operatorId = identifier(required=True)
    verdict = one_of(Verdict, required=True)
    faults = fields.List(one_of(Fault), required=True)
    storedWins = Whole(required=True, allow_none=True)
    foundWins = Whole(required=True, allow_none=True)
    differences = fields.List(fields.Nested(DifferenceSchema), required=True)


class SecondTabulationSchema(Schema):
    """Both tabulations of a round side by side. It is settled only when the ``verdict`` is ``agree``. The
    counts are wins per tier 0 to 5, as the draw published them, as they are on record now, and as they were found in
    the archives; null until all operators are done, or when an archive could not be read.
    """

    verdict = one_of(Verdict, required=True)
    drawnCounts = fields.List(Whole(), required=True, allow_none=True)
    storedCounts = fields.List(Whole(), required=True, allow_none=True)
    foundCounts = fields.List(Whole(), required=True, allow_none=True)
    operators = fields.List(fields.Nested(OperatorTabulationSchema), required=True)


def second_tabulation(pieces: Iterable[Piece]) -> dict[str, Any]:
    """What the pieces of a round say together."""
    found = [(piece.operator_id, piece.result) for piece in pieces]
    done = [result for _, result in found if result is not None]
    # Written down by whichever was the last.
    sums: Mapping[str, Any] = next((result["sums"] for result in done if "sums" in result), {})
    if not found:
        verdict = Verdict.NOT_BEGUN
    elif done and not agree(done):
        verdict = Verdict.DISAGREE
    else:
        verdict = Verdict.AGREE if len(done) == len(found) else Verdict.UNDER_WAY
    return {
        "verdict": verdict.value,
        **{f"{name}Counts": sums.get(name) for name in ("drawn", "stored", "found")},
        "operators": [_operator(operator_id, result) for operator_id, result in found],
    }


def _operator(operator_id: str, result: Mapping[str, Any] | None) -> dict[str, Any]:
    about = result or {}
    verdict = Verdict.UNDER_WAY if result is None else Verdict.AGREE if result["agrees"] else Verdict.DISAGREE
    wins = {name: about.get(f"{name}ByTier") for name in ("stored", "found")}
    return {
        "operatorId": operator_id,
        "verdict": verdict.value,
        "faults": about.get("faults", []),
        **{f"{name}Wins": None if counts is None else sum(counts) for name, counts in wins.items()},
        "differences": about.get("differences", []),
    }
