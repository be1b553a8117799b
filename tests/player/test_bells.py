"""Calls to workers: enough of them, and not more than somebody could ever hear."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from dramatiq import Worker

from player.models.mails import Mail
from player.models.payments import ask_withdrawal
from player.models.session import transaction
from tests.player.factories import a_player, an_open_round
from tests.polling import until


def test_calls_that_nobody_hears_do_not_pile_up(node: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from player.tasks import due
    from player.tasks.broker import QUEUE, broker

    broker.flush(QUEUE)
    # Every chore is due from the first day on, and no worker runs.
    chores = due.ring_due()
    monkeypatch.setattr(due, "MOST_UNHEARD", 2 * chores)
    assert [due.ring_due() for _ in range(3)] == [chores, 0, 0]
    broker.flush(QUEUE)
    assert due.ring_due() == chores > 0
    broker.flush(QUEUE)


def test_a_round_does_not_wait_behind_mails_and_withdrawals(node: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from player.tasks import actors, due
    from player.tasks.broker import QUEUE, unheard

    broker, heard = actors.broker, list[str]()
    broker.flush_all()
    an_open_round(due_at=datetime.now(UTC))
    ana = a_player(balance=30)
    with transaction() as session:
        for _ in range(15):
            ask_withdrawal(session, ana.id, 1, "my bank")
            session.add(Mail(player_id=ana.id, address="a@example.com", subject="", body="", due_at=datetime.now(UTC)))

    def note(actor: str) -> None:
        # The worker has taken all calls to rounds before it is done with the first of anything.
        until(lambda: unheard(QUEUE) == 0, what="the call to the round is taken")
        heard.append(actor)

    for actor in (actors.send_mail, actors.tell_provider, actors.advance_round):
        monkeypatch.setattr(actor, "fn", lambda row_id, name=actor.actor_name: note(name))
    # The round is called for last.
    monkeypatch.setattr(due, "SOURCES", [source for source in reversed(due.SOURCES) if source.actor != "do_chore"])
    assert due.ring_due() == 31
    worker = Worker(broker, worker_timeout=10, worker_threads=1)
    worker.start()
    try:
        until(lambda: len(heard) == 31, what="all calls are heard")
    finally:
        worker.stop()
        broker.flush_all()
    assert "advance_round" in heard[:20]
