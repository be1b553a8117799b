"""All that a database holds, so that it can be held against what another one does; and a clock for it that stands.

One rule: every table and every column is compared that there is, whoever adds one. Left out is only what two
databases that did the same cannot have in common: ids from a sequence or from chance, and when a row was written.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from typing import Any

import psycopg2
from sqlalchemy.engine import make_url

BY_CHANCE = {"deliveries": ["id"], "ledger_entries": ["posting_id"]}
"""Columns whose default does not say that they are. An entry is known by its posting's reference instead."""
_MORE = {"ledger_entries": "JOIN (SELECT id AS posting_id, reference FROM ledger_postings) p USING (posting_id)"}
_COLUMNS = """
    SELECT table_name, array_agg(column_name::text ORDER BY ordinal_position) FILTER (WHERE NOT (counted OR timed)),
        min(column_name::text) FILTER (WHERE counted)
    FROM information_schema.columns
    JOIN information_schema.tables USING (table_schema, table_name),
    LATERAL (SELECT is_identity = 'YES' OR coalesce(column_default LIKE 'nextval%', false) AS counted,
                    coalesce(column_default LIKE '%clock_timestamp()%', false) AS timed) AS kind
    WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND table_name NOT LIKE 'tickets_r%'
    GROUP BY table_name ORDER BY table_name
"""
# Names that stand before the built-in ones are found first; defaults of columns were bound to those long ago.
_CLOCK = """
    CREATE SCHEMA still;
    CREATE TABLE still.clock AS SELECT %s::timestamptz AS at;
    CREATE FUNCTION still.now() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT at FROM still.clock';
    CREATE FUNCTION still.clock_timestamp() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT at FROM still.clock';
"""


class Database:
    """A database seen from outside of the house, by a connection of the test's own."""

    def __init__(self, connection: psycopg2.extensions.connection) -> None:
        connection.autocommit = True
        self._connection = connection
        self._everything = ""

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Ask, or change something."""
        with self._connection.cursor() as cursor:
            cursor.execute(query, values or None)
            return cursor.fetchall() if cursor.description else []

    def stop_the_clock(self, at: datetime) -> None:
        """From now on, whoever connects finds that it is ``at``, until ``move_clock``."""
        [(name,)] = self.rows("SELECT current_database()")
        if not self.rows("SELECT 1 FROM pg_namespace WHERE nspname = 'still'"):
            self.rows(_CLOCK, at)
        self.rows(f'ALTER DATABASE "{name}" SET search_path = still, pg_catalog, public')

    def move_clock(self, at: datetime) -> None:
        """Let it be ``at``."""
        self.rows("UPDATE still.clock SET at = %s", at)

    def everything(self) -> dict[str, str]:
        """A hash of each table's rows: in the order in which they were written where that is known."""
        if not self._everything:
            self._everything = " UNION ALL ".join(_hash_of(*found) for found in self.rows(_COLUMNS))
        return dict(self.rows(self._everything))  # type: ignore[arg-type]

    def sessions(self) -> int:
        """How many processes of the coordinator the server still has a connection of."""
        found = self.rows(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = current_database() AND application_name = 'coordinator'"
        )
        return int(found[0][0])


def _hash_of(table: str, columns: list[str], counted: str | None) -> str:
    compared = [column for column in columns if column not in BY_CHANCE.get(table, [])]
    more = _MORE.get(table, "")
    rows = f"SELECT {', '.join(compared + ['reference'] * bool(more))} FROM {table} {more}"
    if counted:
        return f"SELECT '{table}', md5(string_agg(t::text, chr(10))) FROM ({rows} ORDER BY {counted}) t"
    # A sum, since it is the same in any order and nothing need be sorted.
    return f"SELECT '{table}', count(*) || ':' || sum(hashtextextended(t::text, 0)::numeric) FROM ({rows}) t"


@contextmanager
def database_at(url: str) -> Iterator[Database]:
    """The database that a URL of ours names."""
    plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    with closing(psycopg2.connect(plain)) as connection:
        yield Database(connection)
