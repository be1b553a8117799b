"""The archive's store in the database: one key, one content, for ever."""

from __future__ import annotations

import io
import random

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from models.archive_store import PostgresStore
from models.archives import PIECE, TicketArchive
from models.session import transaction
from protocol.errors import Conflict, NotFound
from tests.factories import a_round, manifest, rows, some_operators

pytestmark = pytest.mark.usefixtures("house")

SIZES = (0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE + 77)
KEY = "r1/op_a/content.parquet"


def content(size: int) -> bytes:
    return random.Random(size).randbytes(size)


def put(kept: bytes, key: str = KEY) -> None:
    with transaction() as session:
        PostgresStore(session).put(key, io.BytesIO(kept))


def read(key: str = KEY) -> bytes:
    with transaction() as session:
        return PostgresStore(session).open(key).read()


def refused(statement: str) -> str:
    with pytest.raises(DBAPIError) as error, transaction() as session:
        session.execute(text(statement))
    return str(error.value.orig)


def named(key: str = KEY) -> None:
    """Let an archive name the file."""
    round_id = a_round(some_operators(1))
    manifest(round_id, "op_a")
    with transaction() as session:
        session.add(
            TicketArchive(
                round_id=round_id, operator_id="op_a", sha256="x", bytes=3, tickets=1, store="postgres", key=key
            )
        )


@pytest.mark.parametrize("size", SIZES)
def test_what_was_put_is_read(size: int) -> None:
    put(content(size))
    assert read() == content(size)


def test_any_part_of_a_file_is_read_alone() -> None:
    whole = content(3 * PIECE + 5)
    put(whole)
    places = random.Random(7)
    with transaction() as session:
        file = PostgresStore(session).open(KEY)
        for _ in range(40):
            start, length = places.randrange(len(whole)), places.choice((1, 100, PIECE, 2 * PIECE))
            assert file.seek(start) == file.tell() == start
            assert file.read(length) == whole[start : start + length]
        assert file.seek(-5, io.SEEK_END) == len(whole) - 5
        assert file.read() == whole[-5:]
        assert file.read(1) == b""
        file.seek(10)
        assert file.seek(PIECE, io.SEEK_CUR) == PIECE + 10
        buffer = bytearray(20)
        assert file.readinto(memoryview(buffer)) == 20
        assert buffer == whole[PIECE + 10 : PIECE + 30]
        with pytest.raises(ValueError, match="no place"):
            file.seek(-1)


def test_what_is_held_is_fetched_once() -> None:
    put(content(2 * PIECE))
    with transaction() as session:
        file = PostgresStore(session).open(KEY)
        file.hold(PIECE - 100, PIECE + 100)
    # The session is over: what lies outside cannot be fetched any more, what lies inside is there.
    file.seek(PIECE - 50)
    assert file.read(100) == content(2 * PIECE)[PIECE - 50 : PIECE + 50]


@pytest.mark.parametrize("size", SIZES)
def test_the_same_content_again_changes_nothing(size: int) -> None:
    put(content(size))
    before = rows("SELECT key, place, xmin::text FROM archive_pieces ORDER BY 1, 2")
    put(content(size))
    assert rows("SELECT key, place, xmin::text FROM archive_pieces ORDER BY 1, 2") == before


@pytest.mark.parametrize("other", [b"", b"abd", b"ab", b"abcd", b"abc" * PIECE])
def test_other_content_under_the_same_key_is_refused(other: bytes) -> None:
    put(b"abc")
    with pytest.raises(Conflict, match="other content"):
        put(other)
    assert read() == b"abc"


def test_a_file_that_goes_on_where_the_kept_one_ends_is_another_one() -> None:
    put(content(PIECE))
    with pytest.raises(Conflict):
        put(content(PIECE) + b"x")
    assert read() == content(PIECE)


def test_what_is_not_there_is_not_found() -> None:
    with pytest.raises(NotFound, match="not in its store"):
        read("r1/op_a/other.parquet")


def test_killed_in_the_middle_nothing_is_left() -> None:
    class Killed(BaseException):
        pass

    class Mortal(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            if self.tell() >= PIECE:
                raise Killed
            return super().read(size)

    with pytest.raises(Killed), transaction() as session:
        PostgresStore(session).put(KEY, Mortal(content(2 * PIECE)))
    assert rows("SELECT * FROM archive_files") == rows("SELECT * FROM archive_pieces") == []
    put(b"abc")
    assert read() == b"abc"


def test_nobody_alters_a_file_or_its_pieces() -> None:
    put(b"abc")
    for statement in (
        "UPDATE archive_pieces SET content = 'abd'",
        "UPDATE archive_files SET bytes = 2",
        "UPDATE archive_files SET key = 'other'",
        "DELETE FROM archive_pieces",
        "TRUNCATE archive_pieces",
    ):
        assert "never altered" in refused(statement), statement
    assert "only ever added to" in refused("TRUNCATE archive_files CASCADE")
    assert read() == b"abc"


@pytest.mark.parametrize(
    ("place", "piece"), [(1, "x"), (0, "abcd"), (-1, "abc")], ids=["past the end", "too long", "before"]
)
def test_a_piece_that_does_not_fit_is_not_added(place: int, piece: str) -> None:
    put(b"")
    put(b"abc", "other")
    for key in (KEY, "other", "unknown"):
        reason = refused(f"INSERT INTO archive_pieces VALUES ('{key}', {place}, '{piece}')")
        assert "does not fit" in reason or "counted_from_zero" in reason


def test_a_file_that_no_archive_names_can_be_forgotten() -> None:
    put(content(PIECE + 1))
    with transaction() as session:
        PostgresStore(session).delete(KEY)
        PostgresStore(session).delete("never there")
    assert rows("SELECT * FROM archive_pieces") == []


def test_a_file_that_an_archive_names_stays() -> None:
    put(b"abc")
    named()
    with pytest.raises(DBAPIError, match="never deleted"), transaction() as session:
        PostgresStore(session).delete(KEY)
    assert read() == b"abc"


def test_an_archive_moves_only_to_a_whole_file_that_is_named_by_its_hash() -> None:
    put(b"abc")
    named()
    moved, short, other = "r1/op_a/x.2.parquet", "r1/op_a/x.3.parquet", "r1/op_a/y.2.parquet"
    put(b"abc", moved)
    put(b"ab", short)
    put(b"abc", other)
    move = "UPDATE ticket_archives SET key = '{}'"
    assert "no whole file" in refused(move.format(short))
    assert "no whole file" in refused(move.format("r1/op_a/x.4.parquet"))
    for statement in (
        move.format("r1/op_a/y"),
        move.format(moved) + ", store = 's3'",
        move.format(moved) + ", bytes = 2",
    ):
        assert "only ever added to" in refused(statement), statement
    with transaction() as session:
        session.execute(text(move.format(moved)))
        PostgresStore(session).delete(KEY)
    with pytest.raises(DBAPIError, match="never deleted"), transaction() as session:
        PostgresStore(session).delete(moved)


@pytest.mark.parametrize(
    "statement",
    ["UPDATE ticket_archives SET sha256 = 'y'", "DELETE FROM ticket_archives", "TRUNCATE ticket_archives CASCADE"],
)
def test_what_an_archive_is_stays_written(statement: str) -> None:
    put(b"abc")
    named()
    assert "only ever added to" in refused(statement)
