"""Reading archives: every answer is the one that the tickets themselves give."""

from __future__ import annotations

import hashlib
import io
import random
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text

from models.archive_copies import UnusableArchive
from models.archive_format import ROW_GROUP
from models.archive_reader import ArchiveDamaged, ArchiveReader, open_archive, open_copy
from models.archive_stores import archive_store
from models.archive_writer import ArchiveWriter
from models.archives import TicketArchive
from models.archiving import archive_tickets
from models.ranges import RangeFile
from models.session import transaction
from models.tickets import Ticket
from protocol.errors import NotFound
from protocol.merkle import CHUNK
from tests.archives import IDENTIFIERS, TICKETS, copied, many_tickets
from tests.factories import a_round, manifest, rows, some_operators, submit

SETS = st.lists(TICKETS, unique_by=lambda ticket: ticket[0], max_size=40).map(sorted)


def written(tickets: list[Ticket]) -> bytes:
    file = io.BytesIO()
    with ArchiveWriter(file) as writer:
        for start in range(0, len(tickets), CHUNK):
            writer.add(b"".join(copied(tickets[start : start + CHUNK])))
    return file.getvalue()


def reader_of(content: bytes, tickets: int, sha256: str | None = None) -> ArchiveReader:
    digest = sha256 or hashlib.sha256(content).hexdigest()
    archive = TicketArchive(sha256=digest, bytes=len(content), tickets=tickets, store="postgres", key="an/archive")
    return ArchiveReader(archive, RangeFile(len(content), lambda start, end: content[start:end]))


def of(tickets: list[Ticket]) -> ArchiveReader:
    return reader_of(written(tickets), len(tickets))


LARGE = many_tickets(2 * ROW_GROUP + CHUNK + 5)
SIZES_OF_GROUPS = [ROW_GROUP, ROW_GROUP, CHUNK + 5]


@pytest.fixture(scope="module")
def large() -> ArchiveReader:
    return of(LARGE)


@given(SETS, st.lists(IDENTIFIERS, max_size=5))
def test_a_ticket_is_found_where_it_is_and_one_that_is_not_there_between_its_neighbours(
    tickets: list[Ticket], others: list[str]
) -> None:
    reader, ids = of(tickets), [ticket[0] for ticket in tickets]
    for wanted in [*ids, *others, "-", "~"]:
        place = reader.find(wanted)
        assert place == (bisect_left(ids, wanted), wanted in ids)
        around = reader.chunk(place.row - 1, place.row + 1)
        assert around == tickets[max(place.row - 1, 0) : place.row + 1]


@given(SETS, st.integers(-3, 45), st.integers(-3, 45))
def test_any_stretch_of_rows_is_read(tickets: list[Ticket], start: int, stop: int) -> None:
    assert of(tickets).chunk(start, stop) == tickets[max(start, 0) : max(stop, 0)]


@given(SETS)
def test_numbers_are_those_of_the_tickets(tickets: list[Ticket]) -> None:
    found = list(of(tickets).numbers())
    given_out = [
        row for each in found for row in zip(each.jackpot.tolist(), *(b.tolist() for b in each.bonuses), strict=True)
    ]
    assert given_out == [ticket[1:7] for ticket in tickets]
    for each in found:
        assert each.jackpot.dtype == np.int64
        assert [bonus.dtype for bonus in each.bonuses] == [np.dtype(np.int32)] * 5


def test_a_large_archive_is_read_in_groups_whose_rows_count_on(large: ArchiveReader) -> None:
    found = list(large.numbers())
    assert [len(each.jackpot) for each in found] == SIZES_OF_GROUPS
    assert [each.first for each in found] == [0, ROW_GROUP, 2 * ROW_GROUP]
    assert np.concatenate([each.bonuses[3] for each in found]).tolist() == [ticket[5] for ticket in LARGE]
    assert len(large) == len(LARGE)


def test_in_a_large_archive_tickets_are_found_at_the_edges_of_groups(large: ArchiveReader) -> None:
    edges = [0, 1, ROW_GROUP - 1, ROW_GROUP, ROW_GROUP + 1, 2 * ROW_GROUP, len(LARGE) - 1]
    for row in edges + random.Random(3).sample(range(len(LARGE)), 20):
        assert large.find(LARGE[row][0]) == (row, True)
        assert large.find(f"{LARGE[row][0]}-") == (row + 1, False)
        assert large.tickets_at([row]) == [LARGE[row][0]]


def test_chunks_that_span_groups_are_whole(large: ArchiveReader) -> None:
    assert large.chunk(ROW_GROUP - 5, ROW_GROUP + 5) == LARGE[ROW_GROUP - 5 : ROW_GROUP + 5]
    assert large.chunk(0, len(LARGE)) == LARGE
    assert large.chunk(len(LARGE) - 1, len(LARGE) + 9) == LARGE[-1:]


def test_all_tickets_come_in_their_order(large: ArchiveReader) -> None:
    assert list(large.tickets()) == LARGE


def test_ids_come_in_the_order_of_the_rows_asked_for(large: ArchiveReader) -> None:
    wanted = [5, 3, ROW_GROUP + 1, len(LARGE) - 1, 0]
    assert large.tickets_at(wanted) == [LARGE[row][0] for row in wanted]
    for row in (-1, len(LARGE)):
        with pytest.raises(IndexError):
            large.tickets_at([row])


@pytest.mark.parametrize("read", [lambda r: list(r.tickets()), lambda r: list(r.numbers()), lambda r: r.find("t").row])
def test_an_archive_of_nothing_has_nothing(read: Callable[[ArchiveReader], object]) -> None:
    assert not read(of([]))


def test_only_what_is_asked_for_is_fetched() -> None:
    content, fetched = written(LARGE), list[int]()

    def fetch(start: int, end: int) -> bytes:
        fetched.append(end - start)
        return content[start:end]

    assert len(reader_of(content, len(LARGE))) == len(LARGE)  # its footer is remembered from here on
    archive = TicketArchive(sha256=hashlib.sha256(content).hexdigest(), tickets=len(LARGE), key="an/archive")
    reader = ArchiveReader(archive, RangeFile(len(content), fetch))
    assert fetched == []
    reader.find(LARGE[ROW_GROUP + 7][0])
    reader.find(LARGE[ROW_GROUP + 70][0])
    reader.chunk(ROW_GROUP, ROW_GROUP + CHUNK)
    assert len(fetched) == 1
    assert fetched[0] < len(content) / 2
    reader.tickets_at([3, 5, 7])
    assert len(fetched) == 2
    assert fetched[1] < len(content) / 4


@pytest.mark.parametrize("content", [b"", b"PAR1", b"x" * 100])
def test_what_is_no_archive_at_all_is_a_damaged_one(content: bytes) -> None:
    with forgotten():
        for ask in (len, lambda reader: reader.find("t"), lambda reader: list(reader.numbers())):
            with pytest.raises(ArchiveDamaged, match="an/archive is not what was archived"):
                ask(reader_of(content, 1, "0" * 64))


def test_an_archive_that_there_is_no_memory_for_is_not_a_damaged_one(
    large: ArchiveReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyarrow.parquet.ParquetFile.read_row_group", lambda *_, **__: pa.allocate_buffer(1 << 62))
    with pytest.raises(MemoryError):
        list(large.numbers())


@contextmanager
def forgotten() -> Iterator[None]:
    """Let no footer be remembered."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("models.archive_reader._footers", {})
        yield


def an_archived_operator(tickets: list[Ticket]) -> int:
    round_id = a_round(some_operators(1))
    submit(round_id, "op_a", tickets)
    manifest(round_id, "op_a")
    with transaction() as session:
        archive_tickets(session, round_id, "op_a", archive_store(session))
    return round_id


@pytest.mark.usefixtures("house")
def test_what_was_archived_is_read_from_the_database_and_from_a_checked_copy() -> None:
    round_id = an_archived_operator(LARGE)
    with transaction() as session, open_copy(session, round_id, "op_a") as copy:
        for reader in (open_archive(session, round_id, "op_a"), copy):
            assert list(reader.tickets()) == LARGE
            assert reader.find(LARGE[ROW_GROUP + 5][0]) == (ROW_GROUP + 5, True)
            assert np.concatenate([each.jackpot for each in reader.numbers()]).tolist() == [row[1] for row in LARGE]


@pytest.mark.usefixtures("house")
def test_an_operator_without_an_archive_has_none_to_read() -> None:
    round_id = a_round(some_operators(1))
    with transaction() as session:
        with pytest.raises(NotFound, match="r1/op_a is not in its store"):
            open_archive(session, round_id, "op_a")
        with pytest.raises(NotFound), open_copy(session, round_id, "op_a"):
            pass


@pytest.mark.usefixtures("house")
def test_no_flipped_bit_is_counted_from() -> None:
    round_id = an_archived_operator(LARGE[:50])
    (bits,) = rows("SELECT octet_length(content) * 8 FROM archive_pieces")[0]
    for bit in random.Random(4).sample(range(bits), 25):
        with forgotten(), transaction() as session:
            session.execute(text("SET LOCAL session_replication_role = replica"))
            session.execute(
                text(f"UPDATE archive_pieces SET content = set_bit(content, {bit}, 1 - get_bit(content, {bit}))")
            )
            with pytest.raises(UnusableArchive), open_copy(session, round_id, "op_a"):
                pass
            session.rollback()
    with transaction() as session, open_copy(session, round_id, "op_a") as copy:
        assert len(copy) == 50


@pytest.mark.usefixtures("house")
def test_an_archive_of_which_a_piece_is_lost_is_a_damaged_one() -> None:
    round_id = an_archived_operator(LARGE[:50])
    with transaction() as session:
        session.execute(text("SET LOCAL session_replication_role = replica"))
        session.execute(text("DELETE FROM archive_pieces"))
    with forgotten(), transaction() as session:
        with pytest.raises(UnusableArchive), open_copy(session, round_id, "op_a"):
            pass
        with pytest.raises(ArchiveDamaged):
            open_archive(session, round_id, "op_a").find("t")
