"""Selling for a round and working on it at the same moment: neither waits long for the other, and no ticket is lost."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from datetime import UTC, datetime
from types import SimpleNamespace

from player.models.books import books
from player.models.ledger import balance, player_account
from player.models.looks import note_look
from player.models.purchases import buy_ticket
from player.models.rounds import Round
from player.models.session import database_now, transaction
from tests.player.coordinating import PRICE, rows, the_round
from tests.player.factories import a_player, an_open_round
from tests.polling import until


def test_a_round_is_worked_on_while_tickets_are_being_sold(node: str) -> None:
    from player.tasks.due import put_back, take

    an_open_round(due_at=datetime.now(UTC))
    ana = a_player(balance=PRICE)

    def work_on_it() -> None:
        taken = take(Round, 7)
        assert taken is not None
        with transaction() as session:
            note_look(session, 7, "OPEN", None)
        put_back(taken, None)

    with ThreadPoolExecutor(1) as pool:
        with transaction() as session:
            buy_ticket(session, ana.id, None, True)
            working = pool.submit(work_on_it)
            wait([working], 10)
            # Somebody is buying at every moment of a good evening.
            assert working.done()
        working.result()


def test_who_buys_at_the_moment_a_round_fails_is_paid_back_too(node: str) -> None:
    from player.tasks.looking import Look

    an_open_round()
    ana = a_player(balance=PRICE)
    failed = SimpleNamespace(id=7, state="FAILED", excluded_reason=None, failure_reason="no_manifests")
    with transaction() as session:
        look = Look(the_round(7), database_now(session), SimpleNamespace(round=lambda _: failed))  # type: ignore[arg-type]
    with ThreadPoolExecutor(1) as pool:
        with transaction() as session:
            buy_ticket(session, ana.id, None, True)
            losing = pool.submit(look.lost)
            until(lambda: rows("SELECT 1 FROM pg_locks WHERE NOT granted"), what="the refund waits for the purchase")
        assert losing.result(30)
    assert rows("SELECT status FROM tickets") == [("refunded",)]
    with transaction() as session:
        assert balance(session, player_account(ana.id)) == PRICE
        assert books(session).faults == ()
