"""Holding the two tabulations of a round against each other, an operator at a time.

The one rule kept here: they agree when every single thing does: the archive has its hash and the sealed root, the rows
are the archive's, every win was found by both, and the sums are the draw's. Anything else stops the round in DRAWN with
an alarm, and says what and where.
"""

import logging
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, Literal

import pyarrow as pa
from sqlalchemy.orm import Session

from models.archive_against_rows import rows_as_archived
from models.archive_copies import UnusableArchive, checked_copy
from models.archive_reader import open_archive
from models.draws import Draw, win_counts, wins_of_operator
from models.participation import Manifest
from models.tabulations import Fault, agree
from models.tickets import stream_tickets
from models.work import Kind, Piece, last_of_its_kind, results
from tasks.differences import differences
from tasks.second_count import TIERS, SecondCount

NAMED = 10
"""How many differences a result names at the most."""

log = logging.getLogger(__name__)


def tabulate(session: Session, piece: Piece) -> dict[str, Any]:
    """Find one operator's wins again, from its archive, and compare; the last of a round compares the sums too."""
    result: dict[str, Any] = {"faults": [], "differences": [], "storedByTier": [0] * len(TIERS), "foundByTier": None}
    try:
        with checked_copy(session, piece.round_id, piece.operator_id) as archive:
            _compare(session, piece, archive, result)
    except MemoryError:  # Arrow's own among them, which is one of its exceptions too: nothing is wrong but here
        raise
    except (UnusableArchive, pa.ArrowException, KeyError) as error:
        # What has its hash and is no archive all the same is damaged too: somebody replaced both.
        fault = error.code if isinstance(error, UnusableArchive) else Fault.ARCHIVE_DAMAGED
        stored = win_counts(session, piece.round_id).get(piece.operator_id, [0] * len(TIERS))
        result |= {"faults": [fault], "differences": [], "storedByTier": stored, "foundByTier": None}
    if last_of_its_kind(session, piece):
        _compare_sums(session, piece, result)
    result["agrees"] = not result["faults"]
    if not agree([result]):
        named = {"round": piece.round_id, "operator": piece.operator_id}
        log.critical("tabulations disagree", extra=named | result)
    return result


def _compare(session: Session, piece: Piece, archive: BinaryIO, result: dict[str, Any]) -> None:
    drawn = session.get_one(Draw, piece.round_id)
    sealed = session.get_one(Manifest, (piece.round_id, piece.operator_id))
    count = SecondCount(archive, piece.round_id, piece.operator_id, drawn.numbers)
    stored = _counted(wins_of_operator(session, piece.round_id, piece.operator_id), result["storedByTier"])
    apart = _named(differences(stored, count.wins()))
    result["foundByTier"] = count.by_tier
    if (count.root, count.tickets) != (sealed.counted_root, sealed.counted):
        result["faults"].append(Fault.ARCHIVE_NOT_AS_SEALED)
    archive.seek(0)
    if not rows_as_archived(session, piece.round_id, piece.operator_id, archive):
        result["faults"].append(Fault.ROWS_NOT_AS_ARCHIVED)
        result["differences"] += _changed(session, piece)
    if apart:
        result["faults"].append(Fault.WINNERS_DIFFER)
        result["differences"] += apart


def _counted(wins: Iterable[tuple[str, int]], by_tier: list[int]) -> Iterator[tuple[str, int]]:
    """The wins as they are, counted into ``by_tier`` on the way."""
    for win in wins:
        by_tier[win[1]] += 1
        yield win


def _changed(session: Session, piece: Piece) -> list[dict[str, Any]]:
    """The first tickets that the rows and the archive do not have alike."""
    of = session, piece.round_id, piece.operator_id
    apart = differences(stream_tickets(*of), open_archive(*of).tickets())
    return _named((side, (ticket[0], None)) for side, ticket in apart)


def _named(
    apart: Iterable[tuple[Literal["first_only", "second_only"], tuple[str, int | None]]],
) -> list[dict[str, Any]]:
    """The first few differences as they are shown. Reads all of them: whoever counts along the way has to."""
    where = {"first_only": "database", "second_only": "archive"}
    found: list[dict[str, Any]] = []
    for side, (ticket_id, tier) in apart:
        if len(found) < NAMED:
            found.append({"ticketId": ticket_id, "tier": tier, "onlyIn": where[side]})
    return found


def _compare_sums(session: Session, piece: Piece, result: dict[str, Any]) -> None:
    """Hold the draw's counts against all wins on record, whoever's, and against all that were found."""
    done = [*results(session, piece.round_id, Kind.TABULATE).values(), result]
    drawn = session.get_one(Draw, piece.round_id).winner_counts
    found = [one["foundByTier"] for one in done]
    stored = _sum(win_counts(session, piece.round_id).values())
    # Without all archives there is no sum; the result of the operator whose is missing says so.
    summed = _sum(found) if all(found) else None
    agreed = stored == drawn and summed in (drawn, None)
    result["sums"] = {"agree": agreed, "drawn": drawn, "stored": stored, "found": summed}


def _sum(counts: Iterable[list[int]]) -> list[int]:
    return [sum(each) for each in zip(*counts, strict=True)] or [0] * len(TIERS)
