"""Chunks of sealed tickets: the roots over each ``protocol.merkle.CHUNK`` of them, kept when they are counted.

The one rule kept here: with them, showing that one ticket is under its operator's root reads one chunk of tickets and
never all of them, so that anybody may ask at any time.
"""

from collections.abc import Iterable, Iterator

from sqlalchemy import ForeignKeyConstraint, LargeBinary, insert, select
from sqlalchemy.orm import Mapped, Session, mapped_column

from models.base import Base, Identifier
from models.tickets import Ticket, tickets_from
from protocol.merkle import CHUNK


class TicketChunk(Base):
    """One chunk: its first ticket, and the root over its leaves. Chunks follow each other by ``first_ticket_id``."""

    __tablename__ = "ticket_chunks"
    __table_args__ = (
        ForeignKeyConstraint(["round_id", "operator_id"], ["manifests.round_id", "manifests.operator_id"]),
    )

    round_id: Mapped[int] = mapped_column(primary_key=True)
    operator_id: Mapped[Identifier] = mapped_column(primary_key=True)
    first_ticket_id: Mapped[Identifier] = mapped_column(primary_key=True)
    root: Mapped[bytes] = mapped_column(LargeBinary)


def keep_chunks(session: Session, round_id: int, operator_id: str, chunks: Iterable[tuple[str, bytes]]) -> None:
    """Write down ``(first_ticket_id, root)`` of every chunk of an operator's tickets."""
    rows = [
        {"round_id": round_id, "operator_id": operator_id, "first_ticket_id": first_ticket_id, "root": top}
        for first_ticket_id, top in chunks
    ]
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


def chunk_from(session: Session, round_id: int, operator_id: str, first_ticket_id: str) -> list[Ticket]:
    """The tickets of the chunk that begins with this one, in order."""
    return tickets_from(session, round_id, operator_id, first_ticket_id, CHUNK)
