"""Interface section 2.9: the protocol's statistics, in the older shape and in the newer one at once."""

from __future__ import annotations

from tests.contract.fields import STATISTICS
from tests.contract.shapes import Kind, assert_fields, assert_is, each_field
from tests.contract.world import TICKETS, World


@each_field(STATISTICS)
def test_2_9_statistics__field(world: World, field: str, kind: Kind) -> None:
    assert_is(world.read("/api/public/stats")[field], kind)


def test_2_9_statistics_have_these_fields_and_no_others(world: World) -> None:
    assert_fields(world.read("/api/public/stats"), STATISTICS)


def test_2_9_the_figures_are_those_of_the_played_rounds(world: World) -> None:
    shown = world.read("/api/public/stats")
    assert (shown["closedRounds"], shown["settledRounds"], shown["failedRounds"]) == (1, 2, 1)
    assert shown["totalRounds"] == shown["settledRounds"] + shown["failedRounds"] + shown["activeRounds"]
    assert shown["cumulativeTickets"] == str(2 * TICKETS + 2 * TICKETS)
    assert shown["drawsSinceLastWin"] == 0
    assert shown["currentOddsRange"] == 10_000_000
    assert shown["activeOperators"] <= shown["totalOperators"]
