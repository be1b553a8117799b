"""Writing an archive: tickets as COPY gives them, a chunk at a time, whatever their number.

The one rule kept here: no more than one group of rows is in memory.
"""

from types import TracebackType
from typing import IO, Self

import pyarrow as pa
from pyarrow import csv, parquet

from models.archive_format import ROW_GROUP, SCHEMA, WRITING

COPIED = ("bonus1", "bonus2", "bonus3", "bonus4", "bonus5", "is_quick_pick", "jackpot_number", "ticket_id")
"""The columns as they are given: in the order in which a ticket's line has them."""

_PARSING = csv.ParseOptions(delimiter="\t", quote_char=False)
_CONVERTING = csv.ConvertOptions(column_types=SCHEMA, include_columns=SCHEMA.names)


class ArchiveWriter:
    """Writes one archive into a file. ``with`` writes its end, unless the block raised."""

    def __init__(self, file: IO[bytes]) -> None:
        self._parquet = parquet.ParquetWriter(file, SCHEMA, **WRITING)
        self._tables: list[pa.Table] = []
        self._rows = 0

    def add(self, copied: bytes) -> None:
        """Add some tickets: ``COPIED`` as text, separated by tabs, a ticket a line."""
        block = csv.ReadOptions(column_names=COPIED, use_threads=False, block_size=len(copied) + 1)
        table = csv.read_csv(pa.BufferReader(copied), block, _PARSING, _CONVERTING)
        self._tables.append(table)
        self._rows += table.num_rows
        if self._rows >= ROW_GROUP:
            self._write()

    def _write(self) -> None:
        self._parquet.write_table(pa.concat_tables(self._tables).cast(SCHEMA), row_group_size=ROW_GROUP)
        self._tables, self._rows = [], 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._tables:
            self._write()
        self._parquet.close()
