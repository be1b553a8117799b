"""Matching: a round's tickets cut into stretches of its partition's blocks, and what won in each written down.

The one rule kept here: the stretches cover the partition once and without a gap, whatever it holds. That stands on rows
staying where they are, and from SEALING on they do: nothing writes them, and VACUUM moves none. What does move them
(VACUUM FULL, CLUSTER, a dump and its restore) gives the partition another file, and whoever finds another one than its
stretch was cut from reads all of it: work done twice, and nothing left out.
"""

import contextlib
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import BigInteger, bindparam, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from models.tickets import COLUMNS, partition
from protocol.numbers import Numbers

SMALL: Final = 16 << 20
"""Bytes of tickets below which a stretch is not worth a piece of its own."""
LARGE: Final = 128 << 20
"""Bytes of tickets in a stretch at the most, however many stretches that makes."""
PARALLEL: Final = 8
"""How many stretches at once are of use: there are more only where they would be too large."""


class Stretch(NamedTuple):
    """Blocks of a partition: from ``first`` up to, but not including, ``end``; to the last there is where that is None.
    ``file`` is the partition's file when they were counted.
    """

    file: int
    first: int
    end: int | None


def cut(size: int, blocks: int) -> list[tuple[int, int | None]]:
    """Cut so many blocks of together ``size`` bytes into stretches of much the same length. Never none at all.

    The last one has no end: it takes whatever is there.
    """
    pieces = min(max(min(PARALLEL, size // SMALL), -(-size // LARGE), 1), max(blocks, 1))
    starts = [blocks * place // pieces for place in range(pieces)]
    return list(zip(starts, [*starts[1:], None], strict=True))


def stretches(session: Session, round_id: int) -> list[Stretch]:
    """All of a round's tickets, as stretches that can be matched one beside another."""
    size, block = session.execute(
        text("SELECT pg_relation_size(:partition), current_setting('block_size')::bigint"),
        {"partition": partition(round_id)},
    ).one()
    file = _file(session, round_id)
    return [Stretch(file, first, end) for first, end in cut(size, size // block)]


def match_tickets(
    session: Session, round_id: int, numbers: Numbers, operator_ids: Sequence[str], stretch: Stretch | None = None
) -> int:
    """Write a row into ``winners`` for every tier that a ticket of these operators won; returns how many were new.

    Of a stretch, or of the whole round. Done twice, it changes nothing.
    """
    # Whoever rewrites the table waits for this to end, or was done before we ask for its file.
    session.execute(text(f"LOCK TABLE {partition(round_id)} IN ACCESS SHARE MODE"))
    file = _file(session, round_id)
    condition, places = _within(stretch, file)
    insert = _insert(round_id, condition)
    drawn = {f"n{tier}": number for tier, number in enumerate(numbers)}
    values = {"operators": list(operator_ids), "round": round_id, **drawn, **places}
    if stretch is not None and stretch.file == file:
        # Nobody else has found these, and to be ready for it at every row takes half as long again as to store them.
        with contextlib.suppress(IntegrityError), session.begin_nested():
            return _count(session, insert, values)
    return _count(session, f"{insert} ON CONFLICT DO NOTHING", values)


def _insert(round_id: int, condition: str) -> str:
    """One sequential pass; whose ticket it is, and what it won, is asked of the few that won something.

    One statement writes them all, since what is checked of winners is checked once a statement. And in order: rows that
    go into neighbouring places of an index go there faster.
    """
    hit = " OR ".join(f"{column} = :n{tier}" for tier, column in enumerate(COLUMNS[1:7]))
    wins = " UNION ALL ".join(
        f"SELECT {tier}, operator_id, ticket_id FROM hits WHERE {column} = :n{tier} AND operator_id = ANY(:operators)"
        for tier, column in enumerate(COLUMNS[1:7])
    )
    return (
        f"WITH hits AS MATERIALIZED (SELECT * FROM {partition(round_id)} WHERE {condition}({hit})) "
        "INSERT INTO winners (round_id, tier, operator_id, ticket_id) "
        f"SELECT :round, tier, operator_id, ticket_id FROM ({wins}) AS wins (tier, operator_id, ticket_id) "
        "ORDER BY operator_id, ticket_id"
    )


def _count(session: Session, statement: str, values: dict[str, Any]) -> int:
    done: Any = session.execute(text(statement).bindparams(bindparam("round", type_=BigInteger)), values)
    return int(done.rowcount)


def _within(stretch: Stretch | None, file: int) -> tuple[str, dict[str, str]]:
    """A condition on a row's place, which PostgreSQL answers by reading those blocks and no others."""
    if stretch is None or stretch.file != file:
        return "", {}
    condition, places = "ctid >= CAST(:first AS tid) AND ", {"first": f"({stretch.first},0)"}
    if stretch.end is None:
        return condition, places
    return f"{condition}ctid < CAST(:end AS tid) AND ", places | {"end": f"({stretch.end},0)"}


def _file(session: Session, round_id: int) -> int:
    found = session.execute(text("SELECT pg_relation_filenode(:partition)"), {"partition": partition(round_id)})
    return int(found.scalar_one())
