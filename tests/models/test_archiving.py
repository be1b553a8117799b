"""One reading of an operator's tickets: their number, their root, their chunks and their archive."""

from __future__ import annotations

import hashlib
import io
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from models.archive_format import ROW_GROUP, SCHEMA
from models.archive_store import PostgresStore
from models.archive_stores import archive_store
from models.archive_writer import ArchiveWriter
from models.archives import archive_of
from models.archiving import Reading, archive_tickets, leaf_template
from models.chunks import BLOCK, chunk_roots, roots_around
from models.session import transaction
from models.tickets import Ticket
from protocol.lifecycle import State
from protocol.merkle import CHUNK, leaf_hash
from protocol.merkle import root as root_over
from protocol.tickets import ticket_line, tickets_root
from tests.archives import IDENTIFIERS, TICKETS, copied, many_tickets
from tests.factories import a_round, manifest, rows, some_operators, submit, take_to


@given(st.integers(1, 10**9), IDENTIFIERS, TICKETS)
def test_a_leaf_is_the_one_of_the_published_line(round_id: int, operator_id: str, ticket: Ticket) -> None:
    fields = copied([ticket])[0][:-1].split(b"\t")
    leaf = hashlib.sha256(leaf_template(round_id, operator_id) % tuple(fields)).digest()
    assert leaf == leaf_hash(ticket_line(round_id, operator_id, *ticket))


@given(st.lists(TICKETS, unique_by=lambda ticket: ticket[0], max_size=30))
def test_any_tickets_come_out_of_the_archive_as_they_went_in(tickets: list[Ticket]) -> None:
    file = io.BytesIO()
    with ArchiveWriter(file) as writer:
        reading = Reading(1, "op_a", writer)
        for row in copied(tickets):
            reading.write(row)
        reading.finish()
    table = parquet.read_table(io.BytesIO(file.getvalue()))
    assert table.schema.equals(SCHEMA)
    assert [tuple(row.values()) for row in table.to_pylist()] == tickets
    assert reading.count == len(tickets)


@pytest.mark.parametrize("count", [0, 1, BLOCK + 1, CHUNK, CHUNK + 1, ROW_GROUP, 2 * ROW_GROUP + CHUNK + 5])
@pytest.mark.usefixtures("house")
def test_count_root_chunks_and_archive_are_those_of_the_tickets(count: int) -> None:
    round_id = a_round(some_operators(1))
    tickets = many_tickets(count)
    submit(round_id, "op_a", random.Random(2).sample(tickets, count))
    manifest(round_id, "op_a")
    with transaction() as session:
        counted, root = archive_tickets(session, round_id, "op_a", archive_store(session))
    assert counted == count
    assert root == tickets_root(ticket_line(round_id, "op_a", *ticket) for ticket in tickets)
    with transaction() as session:
        archive = archive_of(session, round_id, "op_a")
        assert archive is not None
        content = PostgresStore(session).open(archive.key).read()
        chunks = list(chunk_roots(session, round_id, "op_a"))
        around = [roots_around(session, round_id, "op_a", number) for number in range(len(chunks))]
    assert (archive.tickets, archive.bytes, archive.store) == (count, len(content), "postgres")
    assert archive.sha256 == hashlib.sha256(content).hexdigest()
    assert [first for first, _ in chunks] == [ticket[0] for ticket in tickets[::CHUNK]]
    leaves = [leaf_hash(ticket_line(round_id, "op_a", *ticket)) for ticket in tickets]
    assert all(roots == [top for _, top in chunks] for roots, _ in around)
    kept = [top for _, blocks in around for top in blocks or ()]
    assert kept == [root_over(leaves[start : start + BLOCK]) for start in range(0, count, BLOCK)]
    file = parquet.ParquetFile(io.BytesIO(content))
    assert [tuple(row.values()) for row in file.read().to_pylist()] == tickets
    sizes = [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]
    assert sizes == [min(ROW_GROUP, count - start) for start in range(0, count, ROW_GROUP)]


@pytest.mark.usefixtures("house")
def test_every_recounted_operator_has_an_archive_whether_its_manifest_agreed_or_not() -> None:
    operators = some_operators(3)
    round_id = a_round(operators)
    for seed, operator_id in enumerate(operators):
        submit(round_id, operator_id, many_tickets(20, seed))
    manifest(round_id, "op_a")
    manifest(round_id, "op_b", ticketsRoot="0" * 64)
    take_to(round_id, State.ESCROWED)
    assert rows("SELECT operator_id, tickets FROM ticket_archives ORDER BY 1") == [("op_a", 20), ("op_b", 20)]
