"""Interface section 2.4: the five sub-prize tiers and a winner's entry."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.fields import WINNER, WINNER_IN_BREAKDOWN
from tests.contract.shapes import Kind, assert_fields, assert_is, each_field
from tests.contract.world import CLOSED, TICKETS, WON, Party, World

PUBLISHED = [
    (1, "bonus1", 25_000, 1_000_000),
    (2, "bonus2", 1_000, 100_000),
    (3, "bonus3", 100, 10_000),
    (4, "bonus4", 10, 1_000),
    (5, "bonus5", 5, 100),
]


def winners(world: World) -> list[dict[str, Any]]:
    """The winners of tier 5: every value of bonus5 was sold twice by each of the two operators that paid."""
    tier = world.read(f"/api/public/draw/{CLOSED}/winners?tier=5")["subPrizeTiers"][0]
    found: list[dict[str, Any]] = tier["winners"]
    assert len(found) == 2 * TICKETS // 100
    return found


def breakdown(world: World, round_id: int) -> list[dict[str, Any]]:
    tier = world.read(f"/api/public/sub-prizes/draw_{round_id}?tier=5")["tiers"][0]
    found: list[dict[str, Any]] = tier["winners"]
    assert found
    return found


@pytest.mark.parametrize(
    ("number", "label", "dollars", "highest"), PUBLISHED, ids=[f"{n} ({label})" for n, label, *_ in PUBLISHED]
)
def test_2_4_sub_prizes__tier(world: World, number: int, label: str, dollars: int, highest: int) -> None:
    """Its prize and its range are in the rules that the round was opened with and that its hash is made from. The
    odds are one in as many as there are numbers.
    """
    rules = world.read(f"/api/public/rounds/{CLOSED}/proof")["rules"]
    assert int(rules["prizes"][number - 1]) == dollars * 1_000_000
    assert int(rules["ranges"][number - 1]) == highest
    assert 1 <= world.read(f"/api/public/draw/{CLOSED}")[label] <= highest


@each_field(WINNER)
def test_2_4_sub_prize_winner__field(world: World, field: str, kind: Kind) -> None:
    for winner in winners(world):
        assert_is(winner[field], kind)


@each_field(WINNER_IN_BREAKDOWN)
def test_2_4_sub_prize_winner_in_breakdown__field(world: World, field: str, kind: Kind) -> None:
    for winner in breakdown(world, CLOSED):
        assert_is(winner[field], kind)


def test_2_4_a_winner_has_these_fields_and_no_others(world: World) -> None:
    for winner in winners(world):
        assert_fields(winner, WINNER)
    for winner in breakdown(world, CLOSED):
        assert_fields(winner, WINNER_IN_BREAKDOWN)


def test_2_4_a_winner_of_tier_5_gets_5_dollars_and_has_not_claimed_them(world: World) -> None:
    assert {(winner["prizeAmount"], winner["claimed"]) for winner in winners(world)} == {("5000000", False)}


def test_2_4_a_prize_that_the_operator_paid_is_claimed(world: World, alba: Party) -> None:
    def claimed() -> dict[str, bool]:
        return {won["ticketId"]: won["claimed"] for won in breakdown(world, WON) if won["operatorId"] == alba.id}

    paid = next(iter(claimed()))
    world.send("/api/operator/payouts", {"roundId": WON, "payouts": [{"ticketId": paid, "tier": 5}]}, alba.headers)
    assert claimed()[paid] is True


def test_2_4_the_winners_are_the_tickets_with_the_drawn_number(world: World) -> None:
    drawn = world.read(f"/api/public/draw/{CLOSED}")["bonus5"]
    sold = {f"t-{place}" for place in range(TICKETS) if place % 100 + 1 == drawn}
    found = {(winner["operatorId"], winner["ticketId"]) for winner in winners(world)}
    paid = (world.parties["alba"].id, world.parties["brio"].id)
    assert found == {(operator_id, ticket_id) for operator_id in paid for ticket_id in sold}
