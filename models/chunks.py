"""Chunks of sealed tickets: the roots over each ``protocol.merkle.CHUNK`` of them and over each block within, kept when
they are counted.

The one rule kept here: with them, showing that one ticket is under its operator's root hashes one block of tickets and
never all of them, so that anybody may ask at any time. They never change (a trigger).
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from sqlalchemy import CheckConstraint, ForeignKeyConstraint, LargeBinary, insert, select, text
from sqlalchemy.orm import Mapped, Session, mapped_column

from models.base import Base, Identifier
from models.tickets import Ticket, tickets_from
from protocol.merkle import CHUNK

BLOCK_HEIGHT: Final = 6
"""Levels from a leaf to the root of its block."""
BLOCK: Final = 1 << BLOCK_HEIGHT
"""Leaves under the root of one block, and blocks in a chunk: no other size leaves a proof fewer hashes to make. Half a
byte a ticket."""
HASH: Final = 32
"""Bytes in a hash."""


class TicketChunk(Base):
    """One chunk: its first ticket, the root over its leaves, and the roots of its blocks one after the other (null in
    rounds from before they were kept). Chunks follow each other by ``first_ticket_id``.
    """

    __tablename__ = "ticket_chunks"
    __table_args__ = (
        ForeignKeyConstraint(["round_id", "operator_id"], ["manifests.round_id", "manifests.operator_id"]),
        CheckConstraint(
            "octet_length(blocks) BETWEEN 32 AND 2048 AND octet_length(blocks) % 32 = 0", name="whole_hashes"
        ),
    )

    round_id: Mapped[int] = mapped_column(primary_key=True)
    operator_id: Mapped[Identifier] = mapped_column(primary_key=True)
    first_ticket_id: Mapped[Identifier] = mapped_column(primary_key=True)
    root: Mapped[bytes] = mapped_column(LargeBinary)
    blocks: Mapped[bytes | None] = mapped_column(LargeBinary)


class Chunk(NamedTuple):
    """What is known of a chunk: its first ticket id, its root, and the roots of its blocks one after the other."""

    first_ticket_id: str
    root: bytes
    blocks: bytes


def keep_chunks(session: Session, round_id: int, operator_id: str, chunks: Iterable[Chunk]) -> None:
    """Write down every chunk of an operator's tickets."""
    rows = [{"round_id": round_id, "operator_id": operator_id} | chunk._asdict() for chunk in chunks]
    if rows:
        session.execute(insert(TicketChunk), rows)


def chunk_roots(session: Session, round_id: int, operator_id: str) -> Iterator[tuple[str, bytes]]:
    """``(first_ticket_id, root)`` of every chunk, in order."""
    rows = session.execute(
        select(TicketChunk.first_ticket_id, TicketChunk.root)
        .where(TicketChunk.round_id == round_id, TicketChunk.operator_id == operator_id)
        .order_by(TicketChunk.first_ticket_id)
    )
    for first_ticket_id, top in rows:  # noqa: UP028 - rows are not pairs to a type checker
        yield first_ticket_id, top


def roots_around(
    session: Session, round_id: int, operator_id: str, number: int
) -> tuple[list[bytes], list[bytes] | None]:
    """The roots of all chunks, and those of the blocks within the chunk of this number (from 0), each in order; no
    blocks, but None, if they were not kept. One statement: a proof needs no more, and asks for no ids.
    """
    query = text(
        "SELECT coalesce(string_agg(root, '' ORDER BY first_ticket_id), ''), (SELECT blocks FROM ticket_chunks "
        "WHERE round_id = :round AND operator_id = :operator ORDER BY first_ticket_id OFFSET :number LIMIT 1) "
        "FROM ticket_chunks WHERE round_id = :round AND operator_id = :operator"
    )
    roots, blocks = session.execute(query, {"round": round_id, "operator": operator_id, "number": number}).one()
    return _hashes(roots), None if blocks is None else _hashes(blocks)


def _hashes(joined: memoryview) -> list[bytes]:
    content = bytes(joined)
    return [content[at : at + HASH] for at in range(0, len(content), HASH)]


def chunk_from(session: Session, round_id: int, operator_id: str, first_ticket_id: str) -> list[Ticket]:
    """The tickets of the chunk that begins with this one, in order."""
    return tickets_from(session, round_id, operator_id, first_ticket_id, CHUNK)
