"""Making a used database as it was when it was new.

One rule: whoever gets it cannot tell. Rows, sequences and tables of rounds are put back; whatever else a test changed
(a trigger of its own, a constraint, a setting) is found by a look at the whole schema, and then the database is not
used again.
"""

from __future__ import annotations

import io
from dataclasses import dataclass

from psycopg2.extensions import cursor as Cursor

_TABLES = """
    SELECT quote_ident(relname), pg_relation_size(oid) FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
"""
# Triggers of the database, which refuse most of this, do not fire for a replica; foreign keys are such triggers too.
_ALONE = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid();
    SET session_replication_role = replica;
"""
_SEQUENCES = "SELECT schemaname || '.' || sequencename, start_value, last_value FROM pg_sequences"
# Whatever is added, dropped or altered leaves another number of rows in the catalogue, or one of a later transaction.
_CATALOGUE = ("attribute", "attrdef", "constraint", "index", "namespace", "proc", "rewrite", "trigger")
_SCHEMA = (
    " UNION ALL ".join(f"SELECT '{name}', count(*), max(xmin::text::bigint) FROM pg_{name}" for name in _CATALOGUE)
    + """
    UNION ALL SELECT 'relations', count(*), sum(hashtext(concat_ws(' ', relname, reloptions::text))) FROM pg_class
    WHERE relnamespace = 'public'::regnamespace
    UNION ALL SELECT 'statistics', count(*), sum(reltuples)::bigint FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
    UNION ALL SELECT 'settings', count(*), 0 FROM pg_db_role_setting JOIN pg_database ON pg_database.oid = setdatabase
    WHERE datname = current_database()
"""
)


@dataclass(frozen=True)
class Picture:
    """A new database: its schema, the rows it came with, and where its sequences stand."""

    schema: set[tuple[object, ...]]
    rows: dict[str, str]
    sequences: dict[str, tuple[int, int | None]]


def picture(cursor: Cursor) -> Picture:
    """Of the database as it is now, which nobody has used."""
    rows = {table: _copied(cursor, table) for table in _tables(cursor)}
    cursor.execute(_SEQUENCES)
    sequences = {name: (start, last) for name, start, last in cursor.fetchall()}
    return Picture(_schema(cursor), rows, sequences)


def emptied(cursor: Cursor, before: Picture) -> bool:
    """Make the database what it was before, and end all other sessions; False when it is not, and is to be dropped."""
    cursor.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
    if cursor.fetchone() != (True,):
        return False
    cursor.execute(_ALONE)
    tables = _tables(cursor)
    if added := [table for table in tables if table not in before.rows]:
        cursor.execute(f"DROP TABLE {', '.join(added)}")
    furnished = [table for table, rows in before.rows.items() if rows]
    used = [table for table, size in tables.items() if size and table not in [*added, *furnished]]
    used += [table for table in furnished if _copied(cursor, table) != before.rows[table]]
    if used:
        # Not DELETE: then rows to come would lie in another order, and plans be made for what was there.
        cursor.execute(f"TRUNCATE {', '.join(used)} CASCADE")
    for table in furnished:
        if _copied(cursor, table) != before.rows[table]:
            cursor.copy_expert(f"COPY {table} FROM STDIN", io.StringIO(before.rows[table]))
    cursor.execute(_SEQUENCES)
    for name, _, last in cursor.fetchall():
        start, then = before.sequences.get(name, (1, None))
        if last != then:
            cursor.execute("SELECT setval(%s::regclass, %s, %s)", (name, then or start, then is not None))
    return _schema(cursor) == before.schema


def _tables(cursor: Cursor) -> dict[str, int]:
    """Each table and how many bytes of rows it has."""
    cursor.execute(_TABLES)
    return dict(cursor.fetchall())


def _copied(cursor: Cursor, table: str) -> str:
    rows = io.StringIO()
    cursor.copy_expert(f"COPY {table} TO STDOUT", rows)
    return rows.getvalue()


def _schema(cursor: Cursor) -> set[tuple[object, ...]]:
    cursor.execute(_SCHEMA)
    return set(cursor.fetchall())
