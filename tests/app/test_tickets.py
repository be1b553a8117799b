"""Ticket batches over HTTP: whole or not at all, refused with the place of every fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.app.conftest import Caller, assert_error
from tests.factories import a_round, an_operator, manifest, move_clock_to, rows

PATH = "/api/operator/tickets"


def a_ticket(place: int = 0, **changes: Any) -> dict[str, Any]:
    return {
        "ticketId": f"t-{place}",
        "jackpotNumber": 1_234_567,
        "bonus1": 1,
        "bonus2": 2,
        "bonus3": 3,
        "bonus4": 4,
        "bonus5": 5,
        "isQuickPick": True,
    } | changes


def a_batch(*tickets: dict[str, Any], round_id: int = 1) -> dict[str, Any]:
    return {"roundId": round_id, "tickets": list(tickets)}


@pytest.fixture
def caller(operator: Callable[[], Caller]) -> Caller:
    made = operator()
    a_round([made.id])
    return made


def stored() -> int:
    return int(rows("SELECT count(*) FROM tickets")[0][0])


def test_a_batch_is_accepted_and_again_without_effect(caller: Caller) -> None:
    batch = a_batch(*(a_ticket(place) for place in range(30)))
    for _ in range(2):
        answer = caller.post(PATH, batch)
        assert answer.status_code == 200
        assert answer.get_json() == {
            "success": True,
            "roundId": 1,
            "operatorId": "op_a",
            "ticketsAccepted": 30,
            "state": "OPEN",
        }
    assert stored() == 30
    assert rows("SELECT ticket_count FROM participations") == [(30,)]


def test_changed_content_is_a_conflict_that_names_the_tickets(caller: Caller) -> None:
    caller.post(PATH, a_batch(a_ticket(0), a_ticket(1)))
    body = assert_error(caller.post(PATH, a_batch(a_ticket(2), a_ticket(1, bonus5=6))), 409, "ticket_conflict")
    assert body["details"]["ticketIds"] == ["t-1"]
    assert stored() == 2


def test_every_fault_is_named_by_place_id_and_field_and_nothing_is_stored(caller: Caller) -> None:
    batch = a_batch(
        a_ticket(0),
        a_ticket(1, bonus5=101, jackpotNumber=0),
        a_ticket(2, isQuickPick=1),
        a_ticket(3, color="red"),
        {"ticketId": "t-4"},
    )
    body = assert_error(caller.post(PATH, batch), 422, "invalid_tickets")
    faults = {(fault["index"], fault["ticketId"], fault["field"]) for fault in body["details"]["faults"]}
    assert {(1, "t-1", "bonus5"), (1, "t-1", "jackpotNumber"), (2, "t-2", "isQuickPick"), (3, "t-3", "color")} <= faults
    assert (4, "t-4", "bonus1") in faults
    assert stored() == 0


def test_at_most_a_hundred_faults_are_named(caller: Caller) -> None:
    body = assert_error(caller.post(PATH, a_batch(*(a_ticket(n, bonus1=0) for n in range(150)))), 422)
    assert len(body["details"]["faults"]) == 100
    assert "more than 100" in body["error"]


def test_an_id_twice_in_a_batch_is_a_fault(caller: Caller) -> None:
    body = assert_error(caller.post(PATH, a_batch(a_ticket(0), a_ticket(1), a_ticket(0))), 422, "invalid_tickets")
    assert [fault["index"] for fault in body["details"]["faults"]] == [2]


def test_a_jackpot_number_beyond_the_rounds_odds_is_a_fault(caller: Caller) -> None:
    body = assert_error(caller.post(PATH, a_batch(a_ticket(0, jackpotNumber=10_000_001))), 422, "invalid_tickets")
    assert body["details"]["faults"][0]["field"] == "jackpotNumber"


def test_a_batch_is_neither_empty_nor_endless(caller: Caller) -> None:
    assert_error(caller.post(PATH, a_batch()), 422)
    many = a_batch(*(a_ticket(place) for place in range(50_001)))
    assert_error(caller.post(PATH, data=msgspec.json.encode(many), content_type="application/json"), 422)
    assert stored() == 0


def test_who_was_not_invited_submits_nothing(caller: Caller, operator: Callable[[str], Caller]) -> None:
    assert_error(operator("b").post(PATH, a_batch(a_ticket())), 403, "not_invited")
    assert_error(caller.post(PATH, a_batch(a_ticket(), round_id=9)), 404)


def test_nothing_is_added_to_a_manifest_or_after_sales(caller: Caller) -> None:
    caller.post(PATH, a_batch(a_ticket()))
    manifest(1, "op_a")
    assert_error(caller.post(PATH, a_batch(a_ticket(1))), 409, "manifest_submitted")
    an_operator("late")
    second = a_round([caller.id])
    move_clock_to(second, "seal_at")
    assert_error(caller.post(PATH, a_batch(a_ticket(), round_id=second)), 409, "sales_ended")
