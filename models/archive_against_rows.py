"""Whether an operator's rows are still what is in its archive, to the last one.

The one rule kept here: all columns of all rows are compared. Equal groups are compared as columns, at the speed of the
copying; the first group that differs ends it.
"""

from typing import Any, BinaryIO

import pyarrow as pa
from pyarrow import csv, parquet
from sqlalchemy.orm import Session

from models.archive_format import SCHEMA
from models.tickets import COLUMNS, copy_in_order

_PARSING = csv.ParseOptions(delimiter=",", quote_char=False)
_CONVERTING = csv.ConvertOptions(column_types=SCHEMA, true_values=["t"], false_values=["f"])


def rows_as_archived(session: Session, round_id: int, operator_id: str, archive: BinaryIO) -> bool:
    """Read the rows in ticket order beside the archive; False when any of them, or their number, differs."""
    comparing = _Comparing(parquet.ParquetFile(archive))
    copy_in_order(session, round_id, operator_id, COLUMNS, ",", comparing)
    return comparing.ended()


class _Comparing:
    """Takes rows as COPY gives them, one a call, and compares them with the next group of an archive."""

    def __init__(self, archive: Any) -> None:
        self._archive = archive
        self._group = 0
        self._wanted = self._size()
        self._rows: list[bytes] = []
        self._same = True

    def _size(self) -> int:
        """Rows in the group that is next; 0 when there is none."""
        metadata = self._archive.metadata
        return metadata.row_group(self._group).num_rows if self._group < metadata.num_row_groups else 0

    def write(self, row: bytes) -> None:
        """Take one row with its line end."""
        if not self._same:
            return
        self._rows.append(row)
        if len(self._rows) >= self._wanted:
            self._same = self._wanted > 0 and self._agrees()
            self._group += 1
            self._wanted = self._size()
            self._rows = []

    def ended(self) -> bool:
        """Whether everything was equal, once there are no more rows."""
        return self._same and not self._rows and not self._wanted

    def _agrees(self) -> bool:
        content = b"".join(self._rows)
        block = csv.ReadOptions(column_names=COLUMNS, use_threads=False, block_size=len(content) + 1)
        try:
            rows = csv.read_csv(pa.BufferReader(content), block, _PARSING, _CONVERTING)
        except MemoryError:  # Arrow's own among them
            raise
        except pa.ArrowException:  # something that no ticket has
            return False
        archived = self._archive.read_row_group(self._group, columns=list(COLUMNS), use_threads=False)
        return bool(rows.cast(SCHEMA).equals(archived.cast(SCHEMA)))
