"""Dropping the rows of finished rounds' tickets, which their archives then stand for.

The one rule kept here: nothing goes before the archive of every operator whose tickets agreed was read to its end and
found to be what its hash says, in the very transaction that drops the rows; the database holds that, in
``drop_tickets``. Tickets in no sealed set (their operator sent no manifest or a wrong one, or the round failed before
it was sealed) go with the rest.

A partition is detached first, concurrently, in transactions of its own: nobody who reads or writes other rounds
waits. Killed anywhere, the next one goes on from there.
"""

from psycopg2.errors import LockNotAvailable, QueryCanceled
from sqlalchemy import ForeignKey, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Mapped, Session, mapped_column

from models.archive_checks import Checked, check_archive
from models.base import Base, Created
from models.session import engine
from models.tickets import partition

LOCK_SECONDS = 2.0
"""How long one statement waits for one lock. Somebody who opens a round may wait behind us for so long."""
STATEMENT_SECONDS = 10.0
"""How long a detachment may take, waiting and all."""


class TicketDrop(Base):
    """That a round's rows are gone: how many tickets were on record, and how many of them are in archives."""

    __tablename__ = "ticket_drops"

    round_id: Mapped[int] = mapped_column(ForeignKey("rounds.id"), primary_key=True, autoincrement=False)
    tickets: Mapped[int]
    archived: Mapped[int]
    dropped_at: Mapped[Created]


def check_next_archive(session: Session, days: int) -> Checked | None:
    """Check one archive of a round that is old enough, the oldest first; None when all were.

    One that was not intact is looked at again an hour later: a store may have been repaired.
    """
    found = session.execute(_UNCHECKED, {"days": days}).first()
    return None if found is None else check_archive(session, *found)


def droppable_rounds(session: Session, days: int) -> list[int]:
    """Rounds that were finished more than ``days`` ago and need their rows no more, oldest first."""
    return list(session.scalars(_DROPPABLE, {"days": days}))


def detach_tickets(round_id: int) -> bool:
    """Take a round's partition out of the table of all tickets; False when somebody is in the way just now.

    In connections of its own, outside of any transaction: so PostgreSQL wants it.
    """
    with engine().connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        # At most one partition can be half detached; it goes first, or no other one could.
        pending = connection.scalar(_PENDING)
        attached = connection.scalar(_ATTACHED, {"name": partition(round_id)})
        steps = [f"ALTER TABLE tickets DETACH PARTITION {pending} FINALIZE"] if pending else []
        if attached and pending != partition(round_id):
            steps.append(f"ALTER TABLE tickets DETACH PARTITION {partition(round_id)} CONCURRENTLY")
        try:
            connection.execute(text(f"SET lock_timeout = '{LOCK_SECONDS}s'"))
            connection.execute(text(f"SET statement_timeout = '{STATEMENT_SECONDS}s'"))
            for step in steps:
                connection.execute(text(step))
        except OperationalError as error:
            if not isinstance(error.orig, LockNotAvailable | QueryCanceled):
                raise
            return False
        finally:
            # The connection goes back to the others, who wait as long as they like.
            connection.execute(text("RESET lock_timeout"))
            connection.execute(text("RESET statement_timeout"))
    return True


def check_archives(session: Session, round_id: int) -> Checked | None:
    """Read every archive that a round's rows are dropped for; the first that is not intact, or None.

    ``drop_tickets`` wants it in its own transaction: an archive that was whole some days ago may be lost by now.
    """
    for operator_id in session.scalars(_NEEDED, {"round": round_id}).all():
        checked = check_archive(session, round_id, operator_id)
        if not checked.intact:
            return checked
    return None


def drop_tickets(session: Session, round_id: int) -> bool:
    """Drop the rows of a round that was detached and whose archives were checked in this transaction, and note it;
    False when somebody is reading the rows just now.
    """
    savepoint = session.begin_nested()
    try:
        session.execute(text(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'"))
        session.execute(text("SELECT drop_tickets(:round)"), {"round": round_id})
        session.execute(text("SET LOCAL lock_timeout = 0"))
    except OperationalError as error:
        if not isinstance(error.orig, LockNotAvailable):
            raise
        savepoint.rollback()
        return False
    savepoint.commit()
    return True


_UNCHECKED = text("""
    SELECT a.round_id, a.operator_id FROM finished_rounds_with_rows(:days) AS r
    JOIN ticket_archives a ON a.round_id = r
    JOIN manifests m ON (m.round_id, m.operator_id) = (a.round_id, a.operator_id) AND m.agreed
    LEFT JOIN archive_checks c ON (c.round_id, c.operator_id, c.sha256) = (a.round_id, a.operator_id, a.sha256)
    WHERE c.intact IS NULL OR NOT c.intact AND c.checked_at < now() - interval '1 hour'
    ORDER BY a.round_id, a.operator_id LIMIT 1
""")
_NEEDED = text("SELECT operator_id FROM manifests WHERE round_id = :round AND agreed ORDER BY operator_id")
_DROPPABLE = text("""
    SELECT r FROM finished_rounds_with_rows(:days) AS r WHERE tickets_are_needed(r) IS NULL ORDER BY r
""")
_PENDING = text("""
    SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'tickets'::regclass AND inhdetachpending
""")
_ATTACHED = text("""
    SELECT EXISTS (
        SELECT FROM pg_inherits WHERE inhparent = 'tickets'::regclass AND inhrelid = to_regclass(:name)
    )
""")
