"""Interface section 2.3: a draw, field by field."""

from __future__ import annotations

from tests.contract.fields import DRAW, NUMBERS
from tests.contract.shapes import Kind, assert_fields, assert_is, each, each_field
from tests.contract.world import CLOSED, DRAWN, WON, World


@each_field(DRAW)
def test_2_3_draw__field(world: World, field: str, kind: Kind) -> None:
    assert_is(world.read(f"/api/public/draw/{CLOSED}")[field], kind)


@each("round_id", [CLOSED, WON, DRAWN])
def test_2_3_a_draw_has_these_fields_and_no_others(world: World, round_id: int) -> None:
    assert_fields(world.read(f"/api/public/draw/{round_id}"), DRAW)


def test_2_3_drawId_has_the_form_draw_and_the_round_id(world: World) -> None:
    shown = world.read(f"/api/public/draw/{CLOSED}")
    assert (shown["drawId"], shown["roundId"]) == (f"draw_{CLOSED}", CLOSED)


def test_2_3_the_values_are_the_rounds_own(world: World) -> None:
    draw, full = world.read(f"/api/public/draw/{WON}"), world.read(f"/api/public/rounds/{WON}")
    same = ("drawSeed", *NUMBERS, "jackpotWon", "jackpotWinnerCount", "jackpotAmount")
    assert {field: draw[field] for field in same} == {field: full[field] for field in same}
