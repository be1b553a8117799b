"""Calls to workers: enough of them, and not more than somebody could ever hear."""

from __future__ import annotations

import pytest


def test_calls_that_nobody_hears_do_not_pile_up(node: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from player.tasks import due
    from player.tasks.broker import QUEUE, broker

    broker.flush(QUEUE)
    monkeypatch.setattr(due, "MOST_UNHEARD", 6)
    # Three chores are due from the first day on, and no worker runs.
    assert [due.ring_due() for _ in range(4)] == [3, 3, 0, 0]
    broker.flush(QUEUE)
    assert due.ring_due() == 3
    broker.flush(QUEUE)
