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
from psycopg2.errors import UniqueViolation
from sqlalchemy import BigInteger, Boolean, Column, Connection, Integer, Table, bindparam, text
from sqlalchemy.orm import Session

from models.base import BYTE_ORDER, Base
from protocol.errors import Conflict
from protocol.numbers import Numbers
from protocol.rules import Rules

Ticket = tuple[str, int, int, int, int, int, int, bool]

COLUMNS = ("ticket_id", "jackpot_number", "bonus1", "bonus2", "bonus3", "bonus4", "bonus5", "is_quick_pick")
_COPIED = ", ".join(("operator_id", *COLUMNS))
_STREAM_ROWS = 10_000
_COPIED_AT_ONCE = 1 << 20
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

    :raises Conflict: a ticketId is on record with other content; ``details`` names the first 100.
    """
    connection = session.connection()
    savepoint = connection.begin_nested()
    try:
        _copy(connection, partition(round_id), operator_id, batch)
    except UniqueViolation:
        savepoint.rollback()
        batch = _unrecorded(session, round_id, operator_id, batch)
        _copy(connection, partition(round_id), operator_id, batch)
    else:
        savepoint.commit()
    return len(batch)


def _copy(connection: Connection, table: str, operator_id: str, batch: Iterable[Ticket]) -> None:
    # COPY takes what JSON lines are without their brackets and quotation marks, and nothing makes those faster.
    # Identifiers are [A-Za-z0-9._:-], so nothing in a row needs COPY's escapes.
    lines = msgspec.json.Encoder().encode_lines((operator_id, *ticket) for ticket in batch)
    rows = BytesIO(lines.translate(None, b'[]"'))
    cursor = cast(Any, connection.connection).cursor()
    with cursor:
        cursor.copy_expert(f"COPY {table} ({_COPIED}) FROM STDIN (DELIMITER ',')", rows, _COPIED_AT_ONCE)


def _unrecorded(session: Session, round_id: int, operator_id: str, batch: Sequence[Ticket]) -> list[Ticket]:
    query = text(
        f"SELECT {', '.join(COLUMNS)} FROM {partition(round_id)} "
        "WHERE operator_id = :operator AND ticket_id = ANY(:ids)"
    )
    found = session.execute(query, {"operator": operator_id, "ids": [ticket[0] for ticket in batch]})
    recorded = {row[0]: tuple(row) for row in found}
    changed = [ticket[0] for ticket in batch if recorded.get(ticket[0], ticket) != ticket]
    if changed:
        raise Conflict(
            "some tickets are on record with other content; nothing was stored",
            code="ticket_conflict",
            details={"ticketIds": changed[:CONFLICTS_NAMED], "count": len(changed)},
        )
    return [ticket for ticket in batch if ticket[0] not in recorded]


def stream_tickets(session: Session, round_id: int, operator_id: str) -> Iterator[Ticket]:
    """An operator's tickets in the order they are hashed, a few at a time whatever their number."""
    query = text(
        f"SELECT {', '.join(COLUMNS)} FROM {partition(round_id)} WHERE operator_id = :operator ORDER BY ticket_id"
    )
    rows = session.execute(query, {"operator": operator_id}, execution_options={"yield_per": _STREAM_ROWS})
    for row in rows:
        yield cast(Ticket, tuple(row))


def tickets_from(session: Session, round_id: int, operator_id: str, ticket_id: str, limit: int) -> list[Ticket]:
    """``limit`` of an operator's tickets in the order they are hashed, from this one on."""
    query = text(
        f"SELECT {', '.join(COLUMNS)} FROM {partition(round_id)} "
        "WHERE operator_id = :operator AND ticket_id >= :first ORDER BY ticket_id LIMIT :limit"
    )
    rows = session.execute(query, {"operator": operator_id, "first": ticket_id, "limit": limit})
    return [cast(Ticket, tuple(row)) for row in rows]


def match_tickets(session: Session, round_id: int, operator_id: str, numbers: Numbers) -> None:
    """Write a row into ``winners`` for every tier that a ticket of the operator won. Done twice, it changes nothing."""
    tiers = "\n".join(
        f"SELECT {tier} AS tier, operator_id, ticket_id FROM hits WHERE {column} = :n{tier} UNION ALL"
        for tier, column in enumerate(COLUMNS[1:7])
    ).removesuffix("UNION ALL")
    hit = " OR ".join(f"{column} = :n{tier}" for tier, column in enumerate(COLUMNS[1:7]))
    statement = text(
        f"WITH hits AS MATERIALIZED (SELECT * FROM {partition(round_id)} WHERE operator_id = :operator AND ({hit})) "
        f"INSERT INTO winners (round_id, tier, operator_id, ticket_id) SELECT :round, w.* FROM ({tiers}) w "
        "ON CONFLICT DO NOTHING"
    ).bindparams(bindparam("round", type_=BigInteger))
    drawn = {f"n{tier}": number for tier, number in enumerate(numbers)}
    session.execute(statement, {"operator": operator_id, "round": round_id, **drawn})


def count_tickets_before(session: Session, round_id: int, operator_id: str, ticket_id: str) -> int:
    """How many of the operator's tickets come before this one in the order they are hashed."""
    query = text(f"SELECT count(*) FROM {partition(round_id)} WHERE operator_id = :operator AND ticket_id < :ticket")
    return cast(int, session.execute(query, {"operator": operator_id, "ticket": ticket_id}).scalar_one())
