"""Reading an archive: numbers for counting, ids of rows, chunks, one ticket, or all of them.

The one rule kept here: what is asked for decides what is read. Whoever counts takes a copy whose hash was checked, and
counts from that copy; whoever shows something reads a part of it in its store.

A row is a ticket's place in the order of ids, from 0: the index of its leaf.
"""

import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet
from sqlalchemy.orm import Session

from models.archive_copies import checked_copy
from models.archive_format import NUMBERS
from models.archive_store import missing
from models.archive_stores import store_called
from models.archives import TicketArchive, archive_of
from models.ranges import RangeFile
from models.tickets import COLUMNS, Ticket
from protocol.errors import LotteryError

FOOTERS_KEPT = 64
"""Of how many archives a process remembers where things are: some 100 KB for a million tickets."""


class ArchiveDamaged(LotteryError):
    """An archive's bytes are not the ones that its hash was made of."""

    code = "archive_damaged"


class Numbers(NamedTuple):
    """Six numbers of consecutive tickets. ``first`` is the row of the first of them."""

    first: int
    jackpot: NDArray[np.int64]
    bonuses: tuple[NDArray[np.int32], ...]


class Place(NamedTuple):
    """Where a ticket id stands, or would stand: at ``row``, before everything that comes after it."""

    row: int
    present: bool


class _Footer(NamedTuple):
    """What the end of an archive says: ``starts`` are the rows with which its groups begin, and at last their number;
    ``first_ids`` the ids with which they begin.
    """

    metadata: Any
    starts: tuple[int, ...]
    first_ids: tuple[str, ...]


class ArchiveReader:
    """One operator's archive, open as long as the session that it was opened with."""

    def __init__(self, archive: TicketArchive, file: RangeFile) -> None:
        self.archive = archive
        self._file = file
        self._read: tuple[tuple[int, Sequence[str]], Any] | None = None

    @cached_property
    def _footer(self) -> _Footer:
        with _damage_named(self.archive):
            return _footer(self.archive, self._file)

    @cached_property
    def _parquet(self) -> Any:
        with _damage_named(self.archive):
            return parquet.ParquetFile(pa.PythonFile(self._file, mode="r"), metadata=self._footer.metadata)

    def __len__(self) -> int:
        return self._footer.starts[-1]

    def numbers(self) -> Iterator[Numbers]:
        """The numbers of all tickets, a group of rows at a time."""
        for group, first in enumerate(self._footer.starts[:-1]):
            jackpot, *bonuses = (column.to_numpy() for column in self._group(group, NUMBERS).columns)
            yield Numbers(first, jackpot, tuple(bonuses))

    def tickets_at(self, rows: Iterable[int]) -> list[str]:
        """The ids of these rows, in the order of the rows as they are given; fastest when that is ascending.

        :raises IndexError: there is no such row.
        """
        found = []
        for row in rows:
            group = self._group_of(row)
            ids = self._group(group, COLUMNS[:1]).column(0)
            found.append(cast(str, ids[row - self._footer.starts[group]].as_py()))
        return found

    def find(self, ticket_id: str) -> Place:
        """Where a ticket is; or, when there is none of this id, where it would be."""
        group = bisect_right(self._footer.first_ids, ticket_id) - 1
        if group < 0:
            return Place(0, present=False)
        # All of the group, though its ids would do: who finds a ticket shows it, or its neighbours, next.
        ids = self._group(group, COLUMNS).column(0)
        low, high = 0, len(ids)
        while low < high:
            middle = (low + high) // 2
            if ids[middle].as_py() < ticket_id:
                low = middle + 1
            else:
                high = middle
        return Place(self._footer.starts[group] + low, low < len(ids) and ids[low].as_py() == ticket_id)

    def chunk(self, start: int, stop: int) -> list[Ticket]:
        """The tickets of the rows from ``start`` up to, but not including, ``stop``, as far as there are any."""
        start, stop = max(start, 0), min(stop, len(self))
        found: list[Ticket] = []
        while start < stop:
            group = self._group_of(start)
            first, end = self._footer.starts[group], min(stop, self._footer.starts[group + 1])
            found += _tuples(self._group(group, COLUMNS).slice(start - first, end - start))
            start = end
        return found

    def tickets(self) -> Iterator[Ticket]:
        """All tickets in the order of their ids, never more than a group of rows in memory."""
        for start, stop in zip(self._footer.starts, self._footer.starts[1:], strict=False):
            yield from self.chunk(start, stop)

    def _group_of(self, row: int) -> int:
        if not 0 <= row < len(self):
            raise IndexError(f"no row {row} among {len(self)}")
        return bisect_right(self._footer.starts, row) - 1

    def _group(self, group: int, columns: Sequence[str]) -> Any:
        """A group's columns as one record batch. The last one asked for is kept."""
        wanted = (group, columns)
        if self._read is None or self._read[0] != wanted:
            with _damage_named(self.archive):
                self._hold(group, columns)
                table = self._parquet.read_row_group(group, columns=list(columns), use_threads=False)
            self._read = wanted, table.combine_chunks().to_batches()[0]
        return self._read[1]

    def _hold(self, group: int, columns: Sequence[str]) -> None:
        """Fetch the stretch of the file in which these columns lie, at once."""
        row_group = self._footer.metadata.row_group(group)
        parts = [row_group.column(COLUMNS.index(name)) for name in (columns[0], columns[-1])]
        start, last = (part.dictionary_page_offset or part.data_page_offset for part in parts)
        self._file.hold(start, last + parts[-1].total_compressed_size)


def open_archive(session: Session, round_id: int, operator_id: str) -> ArchiveReader:
    """An operator's archive, in whichever store holds it; its hash is not checked.

    :raises NotFound: there is none, or its store does not have it.
    """
    return read_archive(session, archive_named(session, round_id, operator_id))


def read_archive(session: Session, archive: TicketArchive) -> ArchiveReader:
    """This archive, as ``open_archive`` gives it.

    :raises NotFound: its store does not have it.
    """
    return ArchiveReader(archive, store_called(session, archive.store).open(archive.key))


@contextmanager
def open_copy(session: Session, round_id: int, operator_id: str) -> Iterator[ArchiveReader]:
    """A copy of an operator's archive on this machine, its hash checked before any of it is understood; gone when the
    block ends.

    :raises NotFound: there is none.
    :raises UnusableArchive: it is not what was archived.
    """
    archive = archive_named(session, round_id, operator_id)
    with checked_copy(session, round_id, operator_id) as copy:
        number = copy.fileno()
        yield ArchiveReader(archive, RangeFile(archive.bytes, lambda start, end: os.pread(number, end - start, start)))


def archive_named(session: Session, round_id: int, operator_id: str) -> TicketArchive:
    """The row that says where an operator's archive is.

    :raises NotFound: there is none.
    """
    archive = archive_of(session, round_id, operator_id)
    if archive is None:
        raise missing(f"r{round_id}/{operator_id}")
    return archive


# What a file holds never changes, so where things are in it can be remembered without asking again. By hash and key: a
# damaged archive is put back under another key, and what was read of the damaged file does not outlive that.
_footers: dict[tuple[str, str], _Footer] = {}


def _footer(archive: TicketArchive, file: RangeFile) -> _Footer:
    named = archive.sha256, archive.key
    found = _footers.get(named)
    if found is None:
        metadata = parquet.read_metadata(pa.PythonFile(file, mode="r"))
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        starts = np.cumsum([0, *(group.num_rows for group in groups)]).tolist()
        found = _Footer(metadata, tuple(starts), tuple(group.column(0).statistics.min for group in groups))
        while len(_footers) >= FOOTERS_KEPT:
            _footers.pop(next(iter(_footers)), None)
        _footers[named] = found
    return found


def _damaged(archive: TicketArchive) -> ArchiveDamaged:
    return ArchiveDamaged(f"the archive {archive.key} is not what was archived")


@contextmanager
def _damage_named(archive: TicketArchive) -> Iterator[None]:
    """Say of bytes that make no archive which one they are."""
    try:
        yield
    except MemoryError:  # Arrow's own among them: that is this machine's
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(archive) from error


def _tuples(batch: Any) -> list[Ticket]:
    return cast(list[Ticket], list(zip(*(column.to_pylist() for column in batch.columns), strict=True)))
