"""Assessing: what a sealed round could cost at the most, counted from its archives.

The one rule kept here: it is published before the round is drawn (``protocol.lifecycle.decide``), once, and of
everything that was sealed, whoever pays for it or not.
"""

from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from pyarrow import parquet
from sqlalchemy import update
from sqlalchemy.orm import Session

from models.archive_copies import checked_copy
from models.participation import participations
from models.rounds import Round
from models.work import Piece
from protocol.lifecycle import State
from protocol.settlement import worst_case

BONUSES = ("bonus1", "bonus2", "bonus3", "bonus4", "bonus5")

Counts = list[NDArray[np.int64]]
"""For each bonus, how many tickets chose each number; the number is the place."""


def assess(session: Session, piece: Piece) -> dict[str, Any]:
    """Count every number of every sealed ticket of a round, and write down its worst case. Of a round that was failed
    meanwhile nothing is published.

    :raises UnusableArchive: nothing is written; it is tried again, and a human told, while the draw waits.
    """
    row = session.get_one(Round, piece.round_id)
    if row.state is State.FAILED:  # perhaps because of an archive that nobody can read
        return {}
    rules = row.parsed_rules
    counts: Counts = [np.zeros(high + 1, dtype=np.int64) for high in rules.number_ranges[1:]]
    for _, manifest in participations(session, piece.round_id):
        if manifest is not None and manifest.agreed:
            with checked_copy(session, piece.round_id, manifest.operator_id) as archive:
                add_numbers(counts, archive)
    most_shared = [int(count.max()) for count in counts]
    # Last, and without reading the round before: whoever takes it a step meanwhile is not held up by the counting.
    session.execute(
        update(Round)
        .where(Round.id == piece.round_id)
        .values(worst_case_usdc=worst_case(rules, most_shared))
        .execution_options(synchronize_session=False)
    )
    return {"mostShared": most_shared}


def add_numbers(counts: Counts, archive: BinaryIO) -> None:
    """Count an archive's bonuses, a group of rows in memory at a time."""
    file: Any = parquet.ParquetFile(archive)
    for group in range(file.num_row_groups):
        table = file.read_row_group(group, columns=list(BONUSES), use_threads=False)
        for name, count in zip(BONUSES, counts, strict=True):
            # In place: a bincount as long as the range would be made anew for every group.
            np.add.at(count, table.column(name).to_numpy(), 1)
