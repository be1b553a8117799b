"""One operator's round of any size, played from OPEN to CLOSED, and then without its rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import text

from models.chores import Name
from models.participation import Participation
from models.session import transaction
from models.tickets import partition
from protocol.lifecycle import State
from tasks.chores import do_chore
from tests.factories import a_round, an_operator, manifest, take_to

BOUNDS = (10_000_000, 1_000_000, 100_000, 10_000, 1_000, 100)


def play_large(tickets: int) -> int:
    """Play a round in which `op_a` sells so many tickets, `t-000000000` and on, as in production but for the clock."""
    operators = [an_operator("a", funds=10**15)]
    round_id = a_round(operators)
    numbers = ", ".join(f"1 + floor(random() * {high})::int" for high in BOUNDS)
    with transaction() as session:
        session.execute(
            text(
                f"INSERT INTO {partition(round_id)} SELECT {round_id}, 'op_a', 't-' || lpad(n::text, 9, '0'), "
                f"{numbers}, n % 2 = 0 FROM generate_series(0, {tickets - 1}) n"
            )
        )
        session.get_one(Participation, (round_id, "op_a")).ticket_count = tickets
    manifest(round_id, "op_a")
    take_to(round_id, State.CLOSED)
    return round_id


@contextmanager
def before_archives() -> Iterator[None]:
    """Let round 1 be one of before there were archives and roots of blocks, as long as the block lasts."""
    _unguarded(
        "UPDATE ticket_archives SET operator_id = 'op_hidden'",
        "CREATE TABLE hidden_blocks AS SELECT first_ticket_id, blocks FROM ticket_chunks",
        "UPDATE ticket_chunks SET blocks = NULL",
    )
    yield
    _unguarded(
        "UPDATE ticket_archives SET operator_id = 'op_a'",
        "UPDATE ticket_chunks c SET blocks = h.blocks FROM hidden_blocks h WHERE h.first_ticket_id = c.first_ticket_id",
        "DROP TABLE hidden_blocks",
    )


def _unguarded(*statements: str) -> None:
    with transaction() as session:
        for statement in ("SET LOCAL session_replication_role = replica", *statements):
            session.execute(text(statement))


def without_rows() -> None:
    """Drop the rows of every finished round, as ROUND_RETENTION does."""
    with transaction() as session:
        session.execute(text("SET LOCAL session_replication_role = replica"))
        session.execute(text("UPDATE round_transitions SET at = at - interval '1 year'"))
        session.execute(text("UPDATE chores SET due_at = now() WHERE id = :name"), {"name": Name.DROP_TICKETS})
    while do_chore(Name.DROP_TICKETS):
        pass
