"""Sealed tickets as the public reads them: one by one with the way to their root, or all of them in order.

The one rule kept here: they come from the operator's archive, whether or not its rows are still there. Only rounds that
were sealed before there were archives, whose rows are never dropped, are read from rows.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from sqlalchemy.orm import Session

from models.archive_format import ROW_GROUP
from models.archive_reader import ArchiveDamaged, Place, open_archive
from models.archives import archive_of
from models.chunks import chunk_from, chunk_roots
from models.session import transaction
from models.tickets import Ticket
from protocol.merkle import CHUNK, Tree, leaf_hash
from protocol.tickets import ticket_line


class Leaf(NamedTuple):
    """A sealed ticket: its place in the order of ids from 0, its line, its leaf and the siblings up to the root."""

    row: int
    line: bytes
    hash: bytes
    proof: list[bytes]


class SealedTree:
    """The tree over one operator's sealed tickets, of which one or two chunks are read and all others are known by
    their roots.
    """

    def __init__(self, session: Session, round_id: int, operator_id: str) -> None:
        self._session = session
        self._round_id = round_id
        self._operator_id = operator_id
        chunks = list(chunk_roots(session, round_id, operator_id))
        self._first_ids = [first for first, _ in chunks]
        self._above = Tree(root for _, root in chunks)
        self._read: dict[int, list[Ticket]] = {}
        self._trees: dict[int, tuple[list[bytes], Tree]] = {}

    def find(self, ticket_id: str) -> Place:
        """Where a ticket is; or, when there is none of this id, where it would be."""
        number = bisect_right(self._first_ids, ticket_id) - 1
        if number < 0:
            return Place(0, present=False)
        tickets = self._chunk(number)
        at = bisect_left(tickets, ticket_id, key=lambda ticket: ticket[0])
        return Place(number * CHUNK + at, at < len(tickets) and tickets[at][0] == ticket_id)

    def leaf(self, row: int) -> Leaf:
        """The ticket at a place that there is.

        :raises ArchiveDamaged: the tickets around it are not those that were sealed.
        """
        number, at = divmod(row, CHUNK)
        lines, within = self._tree(number)
        if within.root != self._above.levels[0][number]:
            raise ArchiveDamaged(
                f"tickets of {self._operator_id} in round {self._round_id} from {number * CHUNK} on are not as sealed"
            )
        proof = within.inclusion_proof(at) + self._above.inclusion_proof(number)
        return Leaf(row, lines[at], within.levels[0][at], proof)

    def _tree(self, number: int) -> tuple[list[bytes], Tree]:
        """The lines of a chunk and the tree over them. Neighbours mostly share one."""
        if number not in self._trees:
            lines = [ticket_line(self._round_id, self._operator_id, *ticket) for ticket in self._chunk(number)]
            self._trees[number] = lines, Tree(map(leaf_hash, lines))
        return self._trees[number]

    def _chunk(self, number: int) -> list[Ticket]:
        if number not in self._read:
            if archive_of(self._session, self._round_id, self._operator_id) is None:
                first = self._first_ids[number]
                self._read[number] = chunk_from(self._session, self._round_id, self._operator_id, first)
            else:
                archive = open_archive(self._session, self._round_id, self._operator_id)
                self._read[number] = archive.chunk(number * CHUNK, (number + 1) * CHUNK)
        return self._read[number]


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
        if archive_of(session, round_id, operator_id) is not None:
            return open_archive(session, round_id, operator_id).chunk(start, start + ROW_GROUP)
        firsts = [first for first, _ in chunk_roots(session, round_id, operator_id)]
        number, beyond = divmod(start, CHUNK)
        over = beyond or number >= len(firsts)
        return [] if over else chunk_from(session, round_id, operator_id, firsts[number])
