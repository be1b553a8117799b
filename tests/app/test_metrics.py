"""What a monitor is told, held against what was done."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import text

from models.session import transaction
from protocol.lifecycle import State
from tests.app.conftest import Caller
from tests.factories import a_played_round, a_round, balances, some_operators


def figures(caller: Caller) -> dict[str, float]:
    """Every figure under its name and the values of its labels."""
    answer = caller.get("/metrics")
    assert answer.status_code == 200
    assert answer.content_type == "text/plain; version=0.0.4; charset=utf-8"
    return {
        "/".join([sample.name.removeprefix("coordinator_"), *sample.labels.values()]): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_a_monitor_sees_rounds_operators_and_money(anybody: Caller) -> None:
    operators = some_operators(3)
    a_played_round(operators, State.SETTLED)
    a_round(operators)
    with transaction() as session:
        session.execute(text("UPDATE operators SET active = false WHERE id = 'op_c'"))
    found = figures(anybody)
    assert {name for name in found if name.startswith("rounds/")} == {f"rounds/{state.value}" for state in State}
    assert (found["rounds/SETTLED"], found["rounds/OPEN"], found["rounds/FAILED"]) == (1, 1, 0)
    assert (found["operators/true"], found["operators/false"]) == (2, 1)
    for account in ("pool", "reserve"):
        # A draw whose small prizes took all there was leaves an account that nothing was ever posted to.
        assert found[f"balance_micro_usdc/{account}"] == balances().get(account, 0)


def test_a_monitor_sees_what_waits_what_failed_and_what_is_held_up(
    anybody: Caller, admin: Callable[..., Caller]
) -> None:
    operators = some_operators(2)
    a_round(operators)
    found = figures(anybody)
    assert found["queue_depth/deliveries"] == 2  # round.opened to each
    assert found["queue_in_flight/deliveries"] == found["deliveries_failed"] == found["queue_paused/deliveries"] == 0
    with transaction() as session:
        session.execute(text("UPDATE deliveries SET due_at = now() - interval '5 minutes' WHERE operator_id = 'op_a'"))
    assert figures(anybody)["queue_oldest_due_seconds/deliveries"] == pytest.approx(300, abs=60)
    with transaction() as session:
        session.execute(text("UPDATE deliveries SET status = 'failed', due_at = NULL"))
    assert admin("oncall").post("/api/admin/queues/deliveries/pause", {"reason": "a drill"}).status_code == 200
    found = figures(anybody)
    assert (found["queue_depth/deliveries"], found["queue_oldest_due_seconds/deliveries"]) == (0, 0)
    assert (found["deliveries_failed"], found["queue_paused/deliveries"], found["queue_paused/rounds"]) == (2, 1, 0)


def test_a_monitor_sees_a_round_whose_tabulations_disagree(anybody: Caller) -> None:
    operators = some_operators(2)
    a_played_round(operators, State.DRAWN)
    assert figures(anybody)["rounds_disagreeing"] == 0
    with transaction() as session:
        session.execute(
            text("UPDATE round_pieces SET result = result || '{\"agrees\": false}' WHERE operator_id = 'op_a'")
        )
    assert figures(anybody)["rounds_disagreeing"] == 1
