"""A history of any length: one round that was really played, copied as often as wanted.

The one rule kept here: the copies are made behind the back of the guards (as a restore does), and only on throw-away
engines of our own.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from sqlalchemy import Connection, text

from models.operators import record_heartbeat
from models.session import engine, transaction
from protocol.lifecycle import State
from tests.factories import a_round, some_operators, take_part, take_to

OPERATORS = 5
TICKETS = 2_000
COPIED = {"rounds": "id", "draws": "round_id", "participations": "round_id", "winners": "round_id"}


def play_one() -> int:
    """Play a round from OPEN to CLOSED, as production does but for the clock."""
    operators = some_operators(OPERATORS)
    round_id = a_round(operators)
    take_part(round_id, operators, TICKETS)
    take_to(round_id, State.CLOSED)
    return round_id


def copy_up_to(round_id: int, last: int) -> None:
    """Copy the round until the rounds after it reach `last`."""
    with engine().begin() as connection:
        connection.execute(text("SET LOCAL session_replication_role = replica"))
        first = connection.execute(text("SELECT max(id) + 1 FROM rounds")).scalar_one()
        for table, key in COPIED.items():
            columns = _columns(connection, table)
            chosen = ", ".join("copy" if column == key else column for column in columns)
            connection.execute(
                text(
                    f"INSERT INTO {table} ({', '.join(columns)}) SELECT {chosen} FROM {table}, "
                    f"generate_series({int(first)}, {int(last)}) copy WHERE {key} = {int(round_id)}"
                )
            )
    with engine().connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM (ANALYZE) rounds, draws, participations, winners"))


@contextlib.contextmanager
def somebody_commits(per_second: int) -> Iterator[None]:
    """Meanwhile an operator's heartbeat is written so many times a second."""
    over = threading.Event()

    def write() -> None:
        while not over.wait(1 / per_second):
            with transaction() as session:
                record_heartbeat(session, "op_a")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        over.set()
        writer.join()


def _columns(connection: Connection, table: str) -> list[str]:
    query = "SELECT column_name FROM information_schema.columns WHERE table_name = :table ORDER BY ordinal_position"
    return list(connection.scalars(text(query), {"table": table}))
