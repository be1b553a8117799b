"""Interface section 9: what is V2 about it, and that the older shapes are still there."""

from __future__ import annotations

import re

from tests.contract.fields import NUMBERS
from tests.contract.shapes import each
from tests.contract.webhooks import delivered
from tests.contract.world import CLOSED, WON, World


def test_9_version__is_V2_numbers_rollover_and_sub_prizes(world: World) -> None:
    """Number-based tickets, six winning numbers a draw, a jackpot that rolls over, five tiers below it."""
    draw = world.read(f"/api/public/draw/{CLOSED}")
    assert all(isinstance(draw[number], int) for number in NUMBERS)
    assert len(world.read(f"/api/public/sub-prizes/draw_{CLOSED}")["tiers"]) == 5
    rolled, after = (int(world.read(f"/api/public/draw/{round_id}")["jackpotAmount"]) for round_id in (CLOSED, WON))
    assert draw["jackpotWon"] is False
    assert 0 < rolled < after


def test_9_version__health_returns_a_version_string(world: World) -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", world.read("/health")["version"])


@each("segment", ["v1", "v2", "V2"])
def test_9_no_version_in_the_path(world: World, segment: str) -> None:
    for path in (f"/api/{segment}/public/rounds", f"/{segment}/api/public/rounds"):
        assert world.get(path).status_code == 404


def test_9_version__paths_carry_no_version_segment(world: World) -> None:
    assert world.get("/api/public/rounds").status_code == 200
    assert world.get("/api/v2/public/rounds").status_code == 404


def test_9_older_shape__winnerIndex_and_winningOperatorId_of_a_round(world: World) -> None:
    shown = world.read(f"/api/public/rounds/{WON}")
    assert isinstance(shown["winnerIndex"], int)
    assert shown["winningOperatorId"] in {world.parties[company].id for company in ("alba", "brio")}


def test_9_older_shape__closedRounds_of_the_statistics(world: World) -> None:
    shown = world.read("/api/public/stats")
    assert {"closedRounds", "settledRounds"} <= set(shown)


def test_9_older_shape__winner_and_amounts_of_the_webhooks(world: World) -> None:
    drawn, settled = delivered(world, "round.drawn").told["data"], delivered(world, "round.settled").told["data"]
    assert drawn["winningOperatorId"] == settled["winningOperatorId"]
    assert drawn["winnerIndex"] == world.read(f"/api/public/rounds/{WON}")["winnerIndex"]
    assert settled["totalPotUsdc"] > settled["serviceFeeUsdc"] > 0
