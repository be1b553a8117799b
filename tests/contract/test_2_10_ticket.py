"""Interface section 2.10: a ticket as an operator submits it; every field, at both ends of its range and past them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.contract.fields import NUMBERS
from tests.contract.shapes import each
from tests.contract.world import RANGES, Party, World, ticket

HIGHEST = dict(zip(NUMBERS, RANGES, strict=True))
FIELDS = ("ticketId", *NUMBERS, "isQuickPick")
WRONG: list[tuple[str, Any]] = [
    *((number, value) for number in NUMBERS for value in (0, -1, HIGHEST[number] + 1, 1.5, "1", True, None)),
    *(("isQuickPick", value) for value in (1, 0, "true", None)),
    *(("ticketId", value) for value in ("", 7, None, "a b")),
]
RIGHT: list[tuple[str, Any]] = [
    *((number, value) for number in NUMBERS for value in (1, HIGHEST[number])),
    *(("isQuickPick", value) for value in (True, False)),
    *(("ticketId", value) for value in ("a", "A-1_2.3:4", "x" * 64)),
]


@pytest.fixture
def send(world: World, newcomer: Party, fresh_round: Callable[[], int]) -> Callable[[dict[str, Any]], Any]:
    """Sends one ticket to a round of its own."""
    round_id = fresh_round()
    return lambda one: world.post("/api/operator/tickets", {"roundId": round_id, "tickets": [one]}, newcomer.headers)


@pytest.mark.parametrize(("field", "value"), RIGHT, ids=[f"{field} is {value!r}" for field, value in RIGHT])
def test_2_10_ticket__field(send: Callable[[dict[str, Any]], Any], field: str, value: Any) -> None:
    assert send(ticket(0) | {field: value}).status_code == 200


@pytest.mark.parametrize(("field", "value"), WRONG, ids=[f"{field} is not {value!r}" for field, value in WRONG])
def test_2_10_ticket_validation__field(send: Callable[[dict[str, Any]], Any], field: str, value: Any) -> None:
    answer = send(ticket(0) | {field: value})
    assert answer.status_code == 422
    assert [fault["field"] for fault in answer.json()["details"]["faults"]] == [field]


@each("field", FIELDS)
def test_2_10_ticket_required__field(send: Callable[[dict[str, Any]], Any], field: str) -> None:
    one = ticket(0)
    del one[field]
    answer = send(one)
    assert answer.status_code == 422
    assert [fault["field"] for fault in answer.json()["details"]["faults"]] == [field]


def test_2_10_ticketId_is_unique(send: Callable[[dict[str, Any]], Any]) -> None:
    assert send(ticket(0)).status_code == 200
    assert send(ticket(0) | {"bonus5": 77}).status_code == 409


def test_2_10_a_ticket_has_no_other_field(send: Callable[[dict[str, Any]], Any]) -> None:
    assert send(ticket(0) | {"color": "red"}).status_code == 422
