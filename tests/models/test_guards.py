"""What the database itself refuses, with no code of ours in the way: statements as from a psql prompt."""

from __future__ import annotations

from itertools import product

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from models.session import transaction
from protocol.lifecycle import TRANSITIONS, State
from tests.factories import (
    a_played_round,
    a_round,
    manifest,
    move_clock_to,
    rows,
    some_operators,
    some_tickets,
    submit,
    take_part,
    take_to,
    the_round,
)

pytestmark = pytest.mark.usefixtures("house")

LEGAL = {(state, step.to) for (state, _), step in TRANSITIONS.items() if state is not None and state is not step.to}


def execute(*statements: str) -> None:
    with transaction() as session:
        for statement in statements:
            session.execute(text(statement))


def refused(*statements: str) -> str:
    """The statements are refused, and the reason."""
    with pytest.raises(DBAPIError) as error:
        execute(*statements)
    return str(error.value.orig)


def test_it_takes_exactly_the_transitions_of_the_table() -> None:
    round_id = a_round(some_operators(1))
    taken = set()
    for before, after in product(State, State):
        # As a superuser with triggers off a round can be put anywhere; with them on, only along the table.
        reason = ", failure_reason = 'x'" if before is State.FAILED else ", failure_reason = NULL"
        execute(
            "SET LOCAL session_replication_role = replica",
            f"UPDATE rounds SET state = '{before}'{reason} WHERE id = {round_id}",
        )
        reason = ", failure_reason = 'x'" if after is State.FAILED else ", failure_reason = NULL"
        try:
            execute(f"UPDATE rounds SET state = '{after}'{reason} WHERE id = {round_id}")
        except DBAPIError:
            continue
        taken.add((before, after))
    assert taken - {(state, state) for state in State} == LEGAL


@pytest.mark.parametrize("round_id", [0, 1, 3, 7])
def test_round_ids_have_no_gap_and_are_not_reused(round_id: int) -> None:
    first = a_round(some_operators(1))
    columns = [
        name for (name,) in rows("SELECT column_name FROM information_schema.columns WHERE table_name = 'rounds'")
    ]
    others = ", ".join(f'"{name}"' for name in columns if name != "id")
    copied = f"INSERT INTO rounds (id, {others}) SELECT {{}}, {others} FROM rounds WHERE id = {first}"
    assert "gap" in refused(copied.format(round_id))
    execute(copied.format(2))


def test_a_round_begins_open_and_is_never_deleted_or_renumbered() -> None:
    round_id = a_round(some_operators(1))
    assert "never deleted" in refused(f"DELETE FROM rounds WHERE id = {round_id}")
    assert "never deleted" in refused("TRUNCATE rounds CASCADE")
    assert "keeps its id" in refused(f"UPDATE rounds SET id = 2 WHERE id = {round_id}")


def test_a_failed_round_has_a_reason_and_no_other_has() -> None:
    round_id = a_round(some_operators(1))
    assert "failed_with_a_reason" in refused(f"UPDATE rounds SET state = 'FAILED' WHERE id = {round_id}")
    assert "failed_with_a_reason" in refused(f"UPDATE rounds SET failure_reason = 'x' WHERE id = {round_id}")


def test_what_a_round_promised_and_published_stays() -> None:
    operators = some_operators(2)
    round_id = a_played_round(operators, State.CLOSED)
    for column in (
        "seed_commit",
        "rules_hash",
        "mode",
        "full_manifest_hash",
        "chained_anchor_hash",
        "effective_manifest_hash",
        "previous_round_hash",
        "settlement_hash",
    ):
        assert "cannot change" in refused(f"UPDATE rounds SET {column} = 'other' WHERE id = {round_id}"), column


INSERT_TICKET = (
    "INSERT INTO {} (round_id, operator_id, ticket_id, jackpot_number, bonus1, bonus2, bonus3, bonus4, bonus5, "
    "is_quick_pick) VALUES (1, 'op_a', 'late', {}, 1, 1, 1, 1, 1, true)"
)


def test_no_ticket_is_written_once_sales_are_over_though_the_state_still_says_open() -> None:
    round_id = a_round(some_operators(1))
    execute(INSERT_TICKET.format("tickets_r1", 1))
    move_clock_to(round_id, "seal_at")
    assert the_round(round_id).state is State.OPEN
    assert "no more tickets" in refused(INSERT_TICKET.format("tickets_r1", 1))


def test_no_ticket_is_written_to_a_round_that_is_not_open_though_its_time_has_not_come() -> None:
    operators = some_operators(1)
    round_id = a_played_round(operators, State.SEALING)
    execute(f"UPDATE rounds SET seal_at = now() + interval '1 minute' WHERE id = {round_id}")
    assert "no more tickets" in refused(INSERT_TICKET.format("tickets_r1", 1))


def test_tickets_are_never_altered_not_even_while_the_round_is_open() -> None:
    round_id = a_round(some_operators(1))
    submit(round_id, "op_a", some_tickets(3))
    for statement in ("UPDATE tickets_r1 SET bonus1 = 1", "DELETE FROM tickets_r1", "TRUNCATE tickets_r1"):
        assert "never altered" in refused(statement)


def test_tickets_do_not_get_in_through_the_parent_table() -> None:
    a_round(some_operators(1))
    assert "partition" in refused(INSERT_TICKET.format("tickets", 1))
    assert "partition" in refused("DELETE FROM tickets")


@pytest.mark.parametrize("number", [0, -1, 10_000_001])
def test_a_number_outside_its_range_is_no_ticket(number: int) -> None:
    a_round(some_operators(1))
    assert "ranges" in refused(INSERT_TICKET.format("tickets_r1", number))


def test_a_round_is_drawn_once_and_only_when_it_is_escrowed() -> None:
    operators = some_operators(1)
    round_id = a_round(operators)
    draw = f"INSERT INTO draws (round_id, draw_seed, {{0}}) VALUES ({round_id}, 'x', 1, 1, 1, 1, 1, 1)".format(
        "jackpot_number, bonus1, bonus2, bonus3, bonus4, bonus5"
    )
    assert "not ready" in refused(draw)
    take_part(round_id, operators)
    take_to(round_id, State.ESCROWED)
    execute(draw)
    assert "uq" in refused(draw) or "pk_draws" in refused(draw)
    assert "drawn already" in refused("UPDATE draws SET draw_seed = 'y'")
    assert "drawn already" in refused("UPDATE draws SET bonus3 = 2")
    assert "never deleted" in refused("DELETE FROM draws")


def test_a_completed_draw_stays_as_it_is() -> None:
    operators = some_operators(1)
    a_played_round(operators, State.DRAWN)
    assert "drawn already" in refused("UPDATE draws SET jackpot_amount = 0")


def test_a_manifest_is_not_replaced_or_added_late() -> None:
    operators = some_operators(2)
    round_id = a_round(operators)
    manifest(round_id, "op_a")
    assert "never altered" in refused("UPDATE manifests SET manifest_hash = 'x'")
    assert "never deleted" in refused("DELETE FROM manifests")
    take_to(round_id, State.SEALING)
    late = "INSERT INTO manifests (round_id, operator_id, manifest_json, manifest_hash, ticket_count)"
    assert "no more manifests" in refused(f"{late} VALUES ({round_id}, 'op_b', '{{}}', 'x', 0)")


def post(*entries: tuple[str, int]) -> list[str]:
    posting = "INSERT INTO ledger_postings (reference, kind) VALUES ('hand', 'deposit')"
    return [
        posting,
        *(
            f"INSERT INTO ledger_entries (posting_id, account_id, amount) SELECT id, '{account}', {amount} "
            "FROM ledger_postings WHERE reference = 'hand'"
            for account, amount in entries
        ),
    ]


def test_a_posting_sums_to_zero_or_is_not_committed() -> None:
    assert "not to zero" in refused(*post(("external", -5), ("pool", 4)))
    assert "not to zero" in refused(*post())
    execute(*post(("external", -5), ("pool", 5)))
    assert rows("SELECT balance FROM ledger_accounts WHERE id = 'pool'") == [(5,)]


def test_no_account_but_the_outside_world_is_overdrawn() -> None:
    assert "not_overdrawn" in refused(*post(("pool", -5), ("external", 5)))


def test_an_operator_is_overdrawn_by_an_expiry_and_by_nothing_else() -> None:
    assert "not_overdrawn" in refused(*post(("operator:op_a", -5), ("reserve", 5)))
    expired, *entries = post(("operator:op_a", -5), ("reserve", 5))
    execute(expired.replace("'deposit'", "'expiry'"), *entries)
    assert rows("SELECT balance FROM ledger_accounts WHERE id = 'operator:op_a'") == [(-5,)]
    renamed = [statement.replace("'hand'", "'second'") for statement in post(("operator:op_a", 3), ("external", -3))]
    execute(*renamed)
    assert rows("SELECT balance FROM ledger_accounts WHERE id = 'operator:op_a'") == [(-2,)]
    taken = [statement.replace("'hand'", "'third'") for statement in post(("operator:op_a", -1), ("pool", 1))]
    assert "not_overdrawn" in refused(*taken)
    account, *rest = [s.replace("'hand'", "'4'") for s in post(("escrow:1", -1), ("reserve", 1))]
    assert "not_overdrawn" in refused(account.replace("'deposit'", "'expiry'"), *rest)


def test_what_expired_is_said_once_and_counted_into_one_draw() -> None:
    operators = some_operators(1)
    for _ in range(3):
        a_round(operators)
    execute("INSERT INTO expiries (round_id, expires_at) VALUES (1, now())")
    assert "counted_after" in refused("UPDATE expiries SET counted_in = 2")
    assert "whole" in refused("UPDATE expiries SET expired_at = now()")
    assert "not_negative" in refused("UPDATE expiries SET expired_at = now(), prizes = 1, amount = -1")
    execute("UPDATE expiries SET expired_at = now(), prizes = 1, amount = 5")
    for statement in (
        "UPDATE expiries SET amount = 6",
        "UPDATE expiries SET expired_at = NULL, prizes = NULL, amount = NULL",
        "UPDATE expiries SET round_id = 2",
    ):
        assert "expired already" in refused(statement)
    assert "counted_after" in refused("UPDATE expiries SET counted_in = 1")
    execute("UPDATE expiries SET counted_in = 2")
    assert "expired already" in refused("UPDATE expiries SET counted_in = 3")
    for statement in ("DELETE FROM expiries", "TRUNCATE expiries"):
        assert "never deleted" in refused(statement)


def test_a_balance_moves_by_postings_only() -> None:
    execute(*post(("external", -5), ("pool", 5)))
    for statement in (
        "UPDATE ledger_accounts SET balance = 6 WHERE id = 'pool'",
        "INSERT INTO ledger_accounts (id, balance) VALUES ('mine', 7)",
        "DELETE FROM ledger_accounts",
    ):
        assert "postings only" in refused(statement)


@pytest.mark.parametrize(
    "table", ["ledger_entries", "ledger_postings", "audit_log", "round_events", "round_transitions"]
)
def test_history_is_only_ever_added_to(table: str) -> None:
    for statement in (f"DELETE FROM {table}", f"TRUNCATE {table} CASCADE"):
        assert "only ever added to" in refused(statement)


def test_what_is_known_of_sealed_tickets_stays_as_it_is() -> None:
    operators = some_operators(1)
    round_id = a_round(operators)
    take_part(round_id, operators)
    take_to(round_id, State.ESCROWED)
    for table in ("ticket_chunks", "ticket_archives"):
        for statement in (
            f"UPDATE {table} SET operator_id = 'op_b'",
            f"DELETE FROM {table}",
            f"TRUNCATE {table} CASCADE",
        ):
            assert "only ever added to" in refused(statement), statement
