"""One round from the operator's side, with a real coordinator on the other end of the wire."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from player.models.session import transaction
from tests.player.coordinating import (
    FUNDS,
    PRICE,
    Side,
    a_ticket,
    claim_all,
    end_sales,
    learn,
    look,
    rows,
    sell,
    sell_some,
    some_players,
    the_round,
)
from tests.polling import until

pytestmark = pytest.mark.usefixtures("generous")


def test_only_the_coordinators_word_confirms_a_batch(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    round_id = side.open_round()
    learn()
    sell_some(round_id, 3)
    with monkeypatch.context() as broken:
        broken.setattr("player.coordinator.Coordinator.submit_tickets", a_failure_of_our_own)
        with pytest.raises(MemoryError):
            look(round_id)
    assert rows("SELECT count(*), count(accepted_at) FROM submissions") == [(1, 0)]
    assert look(round_id) == "selling"
    assert rows("SELECT count(*), count(accepted_at) FROM submissions") == [(1, 1)]
    assert side.rows("SELECT count(*) FROM tickets") == [(3,)]


def a_failure_of_our_own(*anything: object) -> None:
    raise MemoryError


def test_a_round_is_sold_sealed_drawn_and_paid(side: Side) -> None:
    round_id = side.open_round()
    learn()
    sell_some(round_id, 40)
    assert look(round_id) == "selling"
    assert side.rows("SELECT count(*) FROM tickets") == [(40,)]
    sell_some(round_id, 20, seed=2)
    end_sales(round_id)
    assert look(round_id) == "bound"
    assert side.rows("SELECT ticket_count, nonce_commit IS NOT NULL FROM manifests") == [(60, True)]
    side.take_to(round_id, "ESCROWED")
    assert look(round_id) == "revealed"
    side.take_to(round_id, "DRAWN")
    assert side.rows("SELECT nonce_revealed_at IS NOT NULL FROM participations") == [(True,)]
    assert look(round_id) == "checked"
    won = rows("SELECT count(*) FROM prizes")[0][0]
    assert won
    assert won == side.rows("SELECT count(*) FROM winners")[0][0]
    assert rows("SELECT count(*) FROM prizes WHERE amount IS NOT NULL") == [(0,)]
    side.take_to(round_id, "SETTLED")
    assert look(round_id) == "payable"
    assert sorted(rows("SELECT p.tier, t.ticket_id, p.amount FROM prizes p JOIN tickets t ON t.id = p.ticket")) == (
        sorted(side.rows("SELECT tier, ticket_id, prize_usdc FROM winners"))
    )
    assert rows("SELECT balance FROM accounts WHERE id = 'house'") == [(60 * PRICE,)]
    assert claim_all(round_id) == won
    assert look(round_id) == "payable"
    assert side.rows("SELECT count(*) FROM winners WHERE claimed_at IS NULL") == [(0,)]
    side.take_to(round_id, "CLOSED")
    assert look(round_id) == "done"
    assert the_round(round_id).due_at is None


def test_what_is_kept_of_a_ticket_proves_that_it_was_in(side: Side) -> None:
    from protocol.merkle import leaf_hash, verify_inclusion
    from protocol.tickets import ticket_line

    round_id = sold_and_bound(side, 7)
    side.take_to(round_id, "ESCROWED")
    look(round_id)
    root = bytes.fromhex(side.rows("SELECT counted_root FROM manifests")[0][0])
    tickets = rows(
        "SELECT ticket_id, jackpot_number, bonus1, bonus2, bonus3, bonus4, bonus5, is_quick_pick, leaf_index, proof "
        "FROM tickets"
    )
    for *ticket, place, proof in tickets:
        line = ticket_line(round_id, side.operator_id, *ticket)
        path = [bytes(proof[start : start + 32]) for start in range(0, len(proof), 32)]
        assert verify_inclusion(leaf_hash(line), place, len(tickets), path, root)


def test_a_round_in_which_nothing_was_sold_is_taken_part_in_and_ends(side: Side) -> None:
    round_id = sold_and_bound(side, 0)
    assert side.rows("SELECT ticket_count FROM manifests") == [(0,)]
    side.take_to(round_id, "SETTLED")
    assert look(round_id) == "payable"
    side.take_to(round_id, "CLOSED")
    assert look(round_id) == "done"
    assert side.rows("SELECT rounds_participated, rounds_excluded FROM operators") == [(1, 0)]


def test_whoever_is_buying_when_sales_close_is_waited_for_and_nobody_after(side: Side) -> None:
    round_id = side.open_round()
    learn()
    player_id = some_players(1)[0]
    bought, let_go = threading.Event(), threading.Event()

    def buy_slowly() -> None:
        with transaction() as session:
            session.add(a_ticket("slow", round_id, player_id, (1, 1, 1, 1, 1, 1)))
            session.flush()
            bought.set()
            assert let_go.wait(30)

    with ThreadPoolExecutor(2) as pool:
        buying = pool.submit(buy_slowly)
        assert bought.wait(30)
        closing = pool.submit(lambda: (end_sales(round_id), look(round_id)))
        until(lambda: rows("SELECT 1 FROM pg_locks WHERE NOT granted"), what="the closing waits for the purchase")
        let_go.set()
        buying.result(30)
        assert closing.result(30)[1] == "bound"
    assert side.rows("SELECT ticket_id FROM tickets") == [("slow",)]
    with pytest.raises(IntegrityError, match="are over"):
        sell(round_id, player_id, (1, 1, 1, 1, 1, 1))


def test_who_is_too_late_with_the_manifest_pays_everything_back(side: Side) -> None:
    from tests.factories import manifest, some_operators

    others = some_operators(1)
    round_id = side.open_round(*others)
    learn()
    sell_some(round_id, 9)
    manifest(round_id, others[0])
    side.take_to(round_id, "SEALING")
    assert look(round_id) == "closed"
    side.take_to(round_id, "ESCROWED")
    assert look(round_id) == "failed"
    assert the_round(round_id).failure_reason == "missed_sealing"
    everything_is_paid_back(9)


def test_who_cannot_pay_the_escrow_pays_everything_back(side: Side) -> None:
    from models.ledger import operator_account, post
    from models.session import transaction as at_the_coordinator
    from tests.factories import move_clock_to, work

    round_id = sold_and_bound(side, 6)
    with at_the_coordinator() as session:
        post(session, "gone", "adjustment", {operator_account(side.operator_id): -(10**12), "world": 10**12}, None)
    side.take_to(round_id, "SEALED")
    assert look(round_id) == "revealed"
    move_clock_to(round_id, "escrow_deadline")
    work(round_id)
    assert look(round_id) == "failed"
    everything_is_paid_back(6)


def test_a_round_that_fails_while_it_sells_pays_everything_back(side: Side) -> None:
    round_id = side.open_round()
    learn()
    sell_some(round_id, 5)
    side.take_to(round_id, "FAILED")
    learn()
    assert look(round_id) == "failed"
    everything_is_paid_back(5)


def test_when_the_coordinator_draws_other_winners_than_the_numbers_say_nothing_moves(side: Side) -> None:
    from models.session import transaction as at_the_coordinator

    round_id = sold_and_bound(side, 30)
    side.take_to(round_id, "ESCROWED")
    look(round_id)
    side.take_to(round_id, "DRAWN")
    with at_the_coordinator() as session:
        session.execute(text("SET LOCAL session_replication_role = replica"))
        session.execute(text("DELETE FROM winners WHERE ticket_id = (SELECT min(ticket_id) FROM winners)"))
    assert look(round_id) == "revealed"
    stopped = the_round(round_id)
    assert "known to one side only" in str(stopped.last_error)
    assert stopped.due_at is not None
    assert rows("SELECT count(*) FROM prizes") == [(0,)]
    assert rows("SELECT DISTINCT status FROM tickets") == [("active",)]


def test_when_the_coordinator_has_forgotten_tickets_they_are_sent_again(side: Side) -> None:
    from models.session import transaction as at_the_coordinator

    round_id = side.open_round()
    learn()
    sell_some(round_id, 8)
    assert look(round_id) == "selling"
    with at_the_coordinator() as session:
        session.execute(text("SET LOCAL session_replication_role = replica"))
        session.execute(text("DELETE FROM tickets WHERE ticket_id < (SELECT max(ticket_id) FROM tickets)"))
        session.execute(text("UPDATE participations SET ticket_count = 1"))
    end_sales(round_id)
    assert look(round_id) == "bound"
    assert side.rows("SELECT ticket_count FROM manifests") == [(8,)]


def test_a_coordinator_that_is_away_is_asked_again_in_time_and_nothing_is_lost(
    side: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    from player.settings import settings
    from player.tasks.asking import coordinator

    round_id = side.open_round()
    learn()
    sell_some(round_id, 3)
    for url, errors in (("http://127.0.0.1:9", 1), (side.url, 0)):
        monkeypatch.setenv("COORDINATOR_URL", url)
        settings.cache_clear()
        coordinator().close()
        coordinator.cache_clear()
        look(round_id)
        assert rows("SELECT attempts, last_error IS NOT NULL FROM rounds") == [(errors, errors == 1)]
    assert rows("SELECT tickets, attempts, last_error FROM submissions WHERE accepted_at IS NOT NULL") == [(3, 2, None)]


def test_a_round_that_came_and_went_while_the_node_was_down_is_on_record_as_missed(side: Side) -> None:
    long_ago = side.open_round()
    side.take_to(long_ago, "FAILED")
    known = side.open_round()
    learn()
    missed = side.open_round()
    for round_id in (known, missed):
        side.take_to(round_id, "FAILED")
    learn()
    look(known)
    assert rows("SELECT id, stage, state, due_at FROM rounds ORDER BY id") == [
        (known, "failed", "FAILED", None),
        (missed, "failed", "FAILED", None),
    ]


def test_what_the_coordinator_shows_is_kept_for_the_web_processes(side: Side) -> None:
    side.open_round()
    learn()
    views = dict(rows("SELECT name, body FROM coordinator_views"))
    assert set(views) == {"jackpot", "odds", "operator", "balance"}
    assert views["jackpot"]["jackpot"] == "0"
    assert views["balance"] == {"operatorId": side.operator_id, "balanceUsdc": str(10**12), "inEscrowUsdc": "0"}
    assert views["operator"]["operatorId"] == side.operator_id


def test_a_heartbeat_and_the_address_for_webhooks_reach_the_coordinator_once(side: Side) -> None:
    from player.tasks.chores import do_chore

    for _ in range(2):
        do_chore("webhook")
        do_chore("heartbeat")
    assert side.rows("SELECT webhook_url, last_heartbeat IS NOT NULL FROM operators") == [
        ("http://127.0.0.1:8100/webhooks/coordinator", True)
    ]
    assert rows("SELECT count(*) FROM chores WHERE last_error IS NULL AND done_at IS NOT NULL") == [(2,)]


def sold_and_bound(side: Side, tickets: int) -> int:
    """A round whose sales are over and whose manifest is in."""
    round_id = side.open_round()
    learn()
    sell_some(round_id, tickets)
    end_sales(round_id)
    assert look(round_id) == "bound"
    return round_id


def everything_is_paid_back(tickets: int) -> None:
    """Every player has what she had before."""
    assert rows("SELECT DISTINCT balance FROM accounts WHERE id LIKE 'player:%'") == [(FUNDS,)]
    assert rows("SELECT sum(balance) FROM accounts") == [(0,)]
    assert rows("SELECT status, count(*) FROM tickets GROUP BY 1") == [("refunded", tickets)]
    assert rows("SELECT count(*), sum(amount) FROM transactions WHERE type = 'refund'") == [(tickets, tickets * PRICE)]
