"""Tickets: written in bulk while their round is open, never altered, read in the protocol's order.

The one rule kept here: every round's tickets live in a partition of their own, ``tickets_r<id>``, which is written to
directly; its trigger refuses any write once the round is not open. The parent table refuses all direct writes.

A ticket here is a plain tuple ``(ticket_id, jackpot, bonus1, bonus2, bonus3, bonus4, bonus5, is_quick_pick)``: tens of
millions pass through, so they are never objects.
"""

from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from typing import Any, cast

import msgspec
from psycopg2.errors import RestrictViolation, UniqueViolation
from sqlalchemy import BigInteger, Boolean, Column, Connection, Integer, Table, text
from sqlalchemy.orm import Session

from models.base import BYTE_ORDER, Base
from protocol.errors import Conflict
from protocol.rules import Rules

Ticket = tuple[str, int, int, int, int, int, int, bool]

COLUMNS = ("ticket_id", "jackpot_number", "bonus1", "bonus2", "bonus3", "bonus4", "bonus5", "is_quick_pick")
_COPIED = ", ".join(("operator_id", *COLUMNS))
_STREAM_ROWS = 10_000
_COPIED_AT_ONCE = 1 << 20
_COMPARED_AT_ONCE = 5_000
CONFLICTS_NAMED = 100
"""How many conflicting ticket ids an error names at the most."""

tickets = Table(
    "tickets",
    Base.metadata,
    Column("round_id", BigInteger, nullable=False),
    Column("operator_id", BYTE_ORDER, nullable=False),
    Column("ticket_id", BYTE_ORDER, nullable=False),
    Column("jackpot_number", BigInteger, nullable=False),
    Column("bonus1", Integer, nullable=False),
    Column("bonus2", Integer, nullable=False),
    Column("bonus3", Integer, nullable=False),
    Column("bonus4", Integer, nullable=False),
    Column("bonus5", Integer, nullable=False),
    Column("is_quick_pick", Boolean, nullable=False),
    postgresql_partition_by="LIST (round_id)",
)


def partition(round_id: int) -> str:
    """Name of the round's partition. ``int`` keeps anything else out of the statements made from it."""
    return f"tickets_r{int(round_id)}"


def create_partition(session: Session, round_id: int, rules: Rules) -> None:
    """Make the round's partition, with its unique index, number ranges and write guard.

    Made first and attached afterwards: ``CREATE TABLE … PARTITION OF`` would lock every reader of the parent out.
    """
    name = partition(round_id)
    jackpot, *bonuses = rules.number_ranges
    ranges = [("jackpot_number", jackpot), *((f"bonus{tier}", high) for tier, high in enumerate(bonuses, 1))]
    checks = " AND ".join(f"{column} BETWEEN 1 AND {int(high)}" for column, high in ranges)
    for statement in (
        f"CREATE TABLE {name} (LIKE tickets INCLUDING DEFAULTS, "
        f"CONSTRAINT {name}_round CHECK (round_id = {int(round_id)}), CONSTRAINT {name}_ranges CHECK ({checks}))",
        f"ALTER TABLE {name} ALTER round_id SET DEFAULT {int(round_id)}",
        f"CREATE UNIQUE INDEX {name}_key ON {name} (operator_id, ticket_id)",
        f"CREATE TRIGGER guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON {name} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION refuse_late_tickets({int(round_id)})",
        f"ALTER TABLE tickets ATTACH PARTITION {name} FOR VALUES IN ({int(round_id)})",
    ):
        session.execute(text(statement))


def add_tickets(session: Session, round_id: int, operator_id: str, batch: Sequence[Ticket]) -> int:
    """Put a batch on record, whole or not at all; returns how many were new.

    The caller holds the round and the operator's participation. The usual batch is all new and is copied straight
    in; only when some of it is on record already is it compared.

    :raises Conflict: a ticketId is on record with other content; ``details`` names the first 100. Or sales are over.
    """
    connection = session.connection()
    savepoint = connection.begin_nested()
    try:
        _copy(connection, round_id, operator_id, batch)
    except UniqueViolation:
        savepoint.rollback()
        batch = _unrecorded(session, round_id, operator_id, batch)
        _copy(connection, round_id, operator_id, batch)
    else:
        savepoint.commit()
    return len(batch)


def sales_ended(round_id: int) -> Conflict:
    """What a batch or manifest is refused with from ``sealAt`` on."""
    return Conflict(f"round {round_id} takes no more tickets or manifests", code="sales_ended")


def _copy(connection: Connection, round_id: int, operator_id: str, batch: Iterable[Ticket]) -> None:
    # COPY takes what JSON lines are without their brackets and quotation marks, and nothing makes those faster.
    # Identifiers are [A-Za-z0-9._:-], so nothing in a row needs COPY's escapes.
    lines = msgspec.json.Encoder().encode_lines((operator_id, *ticket) for ticket in batch)
    rows = BytesIO(lines.translate(None, b'[]"'))
    cursor = cast(Any, connection.connection).cursor()
    with cursor:
        try:
            cursor.copy_expert(
                f"COPY {partition(round_id)} ({_COPIED}) FROM STDIN (DELIMITER ',')", rows, _COPIED_AT_ONCE
            )
        except RestrictViolation:
            # The partition's guard looks at the clock last, a moment after whoever called us did.
            raise sales_ended(round_id) from None


def _unrecorded(session: Session, round_id: int, operator_id: str, batch: Sequence[Ticket]) -> list[Ticket]:
    query = text(
        f"SELECT {', '.join(COLUMNS)} FROM {partition(round_id)} "
        "WHERE operator_id = :operator AND ticket_id = ANY(:ids)"
    )
    unrecorded, changed = [], []
    for start in range(0, len(batch), _COMPARED_AT_ONCE):
        some = batch[start : start + _COMPARED_AT_ONCE]
        found = session.execute(query, {"operator": operator_id, "ids": [ticket[0] for ticket in some]})
        recorded = {row[0]: tuple(row) for row in found}
        unrecorded += [ticket for ticket in some if ticket[0] not in recorded]
        changed += [ticket[0] for ticket in some if recorded.get(ticket[0], ticket) != ticket]
    if changed:
        raise Conflict(
            "some tickets are on record with other content; nothing was stored",
            code="ticket_conflict",
            details={"ticketIds": changed[:CONFLICTS_NAMED], "count": len(changed)},
        )
    return unrecorded


def stream_tickets(session: Session, round_id: int, operator_id: str) -> Iterator[Ticket]:
    """An operator's tickets in the order they are hashed, a few at a time whatever their number."""
    query = text(
        f"SELECT {', '.join(COLUMNS)} FROM {partition(round_id)} WHERE operator_id = :operator ORDER BY ticket_id"
    )
    rows = session.execute(query, {"operator": operator_id}, execution_options={"yield_per": _STREAM_ROWS})
    for row in rows:
        yield cast(Ticket, tuple(row))


def copy_in_order(
    session: Session, round_id: int, operator_id: str, columns: Sequence[str], delimiter: str, sink: Any
) -> None:
    """Write an operator's tickets into ``sink``, one row a call, in the order they are hashed.

    They are read as they lie and then sorted, whatever the planner thinks: by the index every row may ask for a page of
    its own, and several operators' pages at once push each other out of the database's memory once a round is large.
    """
    cursor = cast(Any, session.connection().connection).cursor()
    with cursor:
        query = f"SELECT {', '.join(columns)} FROM {partition(round_id)} WHERE operator_id = %s ORDER BY ticket_id"
        selected = cursor.mogrify(query, [operator_id]).decode()
        cursor.execute("SET LOCAL enable_indexscan = off")
        cursor.copy_expert(f"COPY ({selected}) TO STDOUT (DELIMITER '{delimiter}')", sink)
        cursor.execute("SET LOCAL enable_indexscan = on")


def tickets_from(session: Session, round_id: int, operator_id: str, ticket_id: str, limit: int) -> list[Ticket]:
    """``limit`` of an operator's tickets in the order they are hashed, from this one on."""
    query = text(
        f"SELECT {', '.join(COLUMNS)} FROM {partition(round_id)} "
        "WHERE operator_id = :operator AND ticket_id >= :first ORDER BY ticket_id LIMIT :limit"
    )
    rows = session.execute(query, {"operator": operator_id, "first": ticket_id, "limit": limit})
    return [cast(Ticket, tuple(row)) for row in rows]


def count_tickets_before(session: Session, round_id: int, operator_id: str, ticket_id: str) -> int:
    """How many of the operator's tickets come before this one in the order they are hashed."""
    query = text(f"SELECT count(*) FROM {partition(round_id)} WHERE operator_id = :operator AND ticket_id < :ticket")
    return cast(int, session.execute(query, {"operator": operator_id, "ticket": ticket_id}).scalar_one())
