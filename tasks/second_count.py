"""The second tabulation: an operator's wins found in its archive.

The one rule kept here: nothing is shared with the first tabulation. That one is SQL over the rows; this one never sees
a row. It reads the archive's columns by their names, compares with NumPy, and hashes every ticket by the published line
to the root that was sealed (tests/deploy/test_layers.py holds what may be imported here).
"""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from pyarrow import parquet

from protocol.merkle import CHUNK, root
from protocol.tickets import ticket_line

TIERS = ("jackpot_number", "bonus1", "bonus2", "bonus3", "bonus4", "bonus5")
"""The column that each tier 0 to 5 looks at."""
_IN_A_LINE = ("ticket_id", *TIERS, "is_quick_pick")


class SecondCount:
    """One pass over an archive, a group of its rows in memory at a time.

    Once ``wins`` was read to its end, ``tickets`` is how many tickets there are, ``by_tier`` how many wins in each
    tier, and ``root`` the root over all tickets (64 hex digits).
    """

    def __init__(self, archive: BinaryIO, round_id: int, operator_id: str, drawn: Iterable[int]) -> None:
        self.tickets = 0
        self.by_tier = [0] * len(TIERS)
        self.root = ""
        self._parquet: Any = parquet.ParquetFile(archive)
        self._round_id = round_id
        self._operator_id = operator_id
        self._drawn = tuple(drawn)

    def wins(self) -> Iterator[tuple[str, int]]:
        """``(ticket_id, tier)`` of every win, by ticket id and then tier. To be read once."""
        tops: list[bytes] = []
        leaves: list[bytes] = []
        for group in range(self._parquet.num_row_groups):
            table = self._parquet.read_row_group(group, columns=list(_IN_A_LINE), use_threads=False)
            leaves += self._leaves(table)
            whole = len(leaves) - len(leaves) % CHUNK
            tops += (root(leaves[start : start + CHUNK]) for start in range(0, whole, CHUNK))
            del leaves[:whole]
            self.tickets += table.num_rows
            yield from self._wins(table)
        if leaves:
            tops.append(root(leaves))
        # The root over the roots of whole chunks is the root over their leaves (RFC 6962).
        self.root = root(tops).hex()

    def _leaves(self, table: Any) -> list[bytes]:
        columns = (table.column(name).to_pylist() for name in _IN_A_LINE)
        about = self._round_id, self._operator_id
        return [sha256(b"\x00" + ticket_line(*about, *ticket)).digest() for ticket in zip(*columns, strict=True)]

    def _wins(self, table: Any) -> Iterator[tuple[str, int]]:
        won: NDArray[np.bool_] = np.column_stack(
            [table.column(name).to_numpy() == number for name, number in zip(TIERS, self._drawn, strict=True)]
        )
        for tier, count in enumerate(won.sum(axis=0).tolist()):
            self.by_tier[tier] += count
        places, tiers = np.nonzero(won)  # by row and then tier
        ids = table.column("ticket_id").take(places).to_pylist()
        yield from zip(ids, tiers.tolist(), strict=True)
