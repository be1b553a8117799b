"""Sealed tickets as the public reads them: one by one with the way to their root, or all of them in order.

The one rule kept here: they come from the operator's archive, whether or not its rows are still there. Only rounds that
were sealed before there were archives, whose rows are never dropped, are read from rows.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cached_property
from typing import Final, NamedTuple

from sqlalchemy.orm import Session

from models.archive_format import ROW_GROUP
from models.archive_reader import ArchiveDamaged, ArchiveReader, Place, read_archive
from models.archives import archive_of
from models.chunks import BLOCK, BLOCK_HEIGHT, chunk_from, chunk_roots, roots_around
from models.session import transaction
from models.tickets import Ticket
from protocol.merkle import CHUNK, Tree, ancestors, leaf_hash
from protocol.tickets import ticket_line

_BLOCKS: Final = CHUNK // BLOCK
"""Blocks in a chunk."""


class Leaf(NamedTuple):
    """A sealed ticket: its place in the order of ids from 0, its line, its leaf and the siblings up to the root."""

    row: int
    line: bytes
    hash: bytes
    proof: list[bytes]


class SealedTree:
    """The tree over one operator's sealed tickets, of which one or two blocks are read and all others are known by
    their roots.
    """

    def __init__(self, session: Session, round_id: int, operator_id: str) -> None:
        self._session = session
        self._of = round_id, operator_id
        self._rows: dict[int, list[Ticket]] = {}
        self._above: dict[int, tuple[Tree, Tree]] = {}
        self._below: dict[int, tuple[list[bytes], Tree]] = {}

    def find(self, ticket_id: str) -> Place:
        """Where a ticket is; or, when there is none of this id, where it would be."""
        if self._archive is not None:
            return self._archive.find(ticket_id)
        number = bisect_right(self._first_ids, ticket_id) - 1
        if number < 0:
            return Place(0, present=False)
        tickets = self._tickets(number * CHUNK, (number + 1) * CHUNK)
        at = bisect_left(tickets, ticket_id, key=lambda ticket: ticket[0])
        return Place(number * CHUNK + at, at < len(tickets) and tickets[at][0] == ticket_id)

    def leaf(self, row: int) -> Leaf:
        """The ticket at a place that there is.

        :raises ArchiveDamaged: the tickets around it are not those that were sealed.
        """
        chunk, block, at = row // CHUNK, row // BLOCK, row % BLOCK
        (chunks, blocks), (lines, leaves) = self._roots(chunk), self._leaves(block)
        within = block - chunk * _BLOCKS
        if blocks.root != chunks.levels[0][chunk] or leaves.root != blocks.levels[0][within]:
            round_id, operator_id = self._of
            raise ArchiveDamaged(f"tickets of {operator_id} in round {round_id} around {row} are not as sealed")
        proof = leaves.inclusion_proof(at) + blocks.inclusion_proof(within) + chunks.inclusion_proof(chunk)
        return Leaf(row, lines[at], leaves.levels[0][at], proof)

    def _roots(self, chunk: int) -> tuple[Tree, Tree]:
        """The trees over the roots of all chunks, and over those of a chunk's blocks. Neighbours mostly share them."""
        if chunk not in self._above:
            chunks, blocks = roots_around(self._session, *self._of, chunk)
            if blocks is None:
                lines = self._lines(self._tickets(chunk * CHUNK, (chunk + 1) * CHUNK))
                blocks = ancestors([leaf_hash(line) for line in lines], BLOCK_HEIGHT)
            self._above[chunk] = Tree(chunks), Tree(blocks)
        return self._above[chunk]

    def _leaves(self, block: int) -> tuple[list[bytes], Tree]:
        """The lines of a block and the tree over them. Neighbours mostly share one."""
        if block not in self._below:
            lines = self._lines(self._tickets(block * BLOCK, (block + 1) * BLOCK))
            self._below[block] = lines, Tree(map(leaf_hash, lines))
        return self._below[block]

    def _lines(self, tickets: list[Ticket]) -> list[bytes]:
        round_id, operator_id = self._of
        return [ticket_line(round_id, operator_id, *ticket) for ticket in tickets]

    def _tickets(self, start: int, stop: int) -> list[Ticket]:
        """Those of some rows within one chunk."""
        if self._archive is not None:
            return self._archive.chunk(start, stop)
        chunk = start // CHUNK
        if chunk not in self._rows:
            self._rows[chunk] = chunk_from(self._session, *self._of, self._first_ids[chunk])
        return self._rows[chunk][start - chunk * CHUNK : stop - chunk * CHUNK]

    @cached_property
    def _archive(self) -> ArchiveReader | None:
        """None in rounds that were sealed before there were archives."""
        archive = archive_of(self._session, *self._of)
        return None if archive is None else read_archive(self._session, archive)

    @cached_property
    def _first_ids(self) -> list[str]:
        return [first for first, _ in chunk_roots(self._session, *self._of)]


def sealed_batches(round_id: int, operator_id: str) -> Iterator[list[Ticket]]:
    """All sealed tickets in the order of their ids, at most a group of rows at once.

    Each batch is a transaction of its own, which is over before the batch is given: whoever takes them may be slow.
    """
    start = 0
    while batch := _batch(round_id, operator_id, start):
        yield batch
        start += len(batch)


def _batch(round_id: int, operator_id: str, start: int) -> list[Ticket]:
    with transaction() as session:
        archive = archive_of(session, round_id, operator_id)
        if archive is not None:
            return read_archive(session, archive).chunk(start, start + ROW_GROUP)
        firsts = [first for first, _ in chunk_roots(session, round_id, operator_id)]
        number, beyond = divmod(start, CHUNK)
        over = beyond or number >= len(firsts)
        return [] if over else chunk_from(session, round_id, operator_id, firsts[number])
