"""Interface section 2.1: a round, field by field, in the list and in full, before and after it is drawn."""

from __future__ import annotations

from typing import Any

from tests.contract.fields import NOT_DRAWN_YET, NOT_SEALED_YET, NUMBERS, ROUND, ROUND_IN_LIST
from tests.contract.shapes import HASH, MICRO, NULL, NUMBER, Kind, assert_fields, assert_is, each, each_field, exactly
from tests.contract.world import CLOSED, DRAWN, FAILED, OPEN, PRICE, RANGES, TICKETS, WON, World

PLAYED = {"FAILED": FAILED, "CLOSED": CLOSED, "SETTLED": WON, "DRAWN": DRAWN, "OPEN": OPEN}


def in_list(world: World, round_id: int) -> dict[str, Any]:
    """The round as the list shows it. Newer rounds, of other tests, stand before it."""
    newest = world.read("/api/public/rounds?limit=1")["rounds"][0]["id"]
    [shown] = world.read(f"/api/public/rounds?limit=1&offset={newest - round_id}")["rounds"]
    assert shown["id"] == round_id
    found: dict[str, Any] = shown
    return found


def in_full(world: World, round_id: int) -> dict[str, Any]:
    found: dict[str, Any] = world.read(f"/api/public/rounds/{round_id}")
    return found


@each_field(ROUND_IN_LIST)
def test_2_1_round_in_list__field(world: World, field: str, kind: Kind) -> None:
    assert_is(in_list(world, WON)[field], kind)


@each_field(ROUND)
def test_2_1_round_in_full__field(world: World, field: str, kind: Kind) -> None:
    assert_is(in_full(world, WON)[field], kind)


@each_field(NOT_SEALED_YET, NOT_DRAWN_YET)
def test_2_1_round_that_is_open__field(world: World, field: str, kind: Kind) -> None:
    assert_is(in_full(world, OPEN)[field], kind)


@each_field({"winnerIndex": NULL, "winningOperatorId": NULL, "jackpotNumber": NUMBER, "jackpotAmount": MICRO})
def test_2_1_round_that_nobody_won__field(world: World, field: str, kind: Kind) -> None:
    assert_is(in_full(world, CLOSED)[field], kind)


@each_field({"settlementHash": NULL, "drawSeed": HASH, "bonus5": NUMBER})
def test_2_1_round_that_is_drawn_and_not_settled__field(world: World, field: str, kind: Kind) -> None:
    assert_is(in_full(world, DRAWN)[field], kind)


@each_field({"failureReason": exactly("no manifests"), "jackpotNumber": NULL, "settlementHash": NULL})
def test_2_1_round_that_failed__field(world: World, field: str, kind: Kind) -> None:
    assert_is(in_full(world, FAILED)[field], kind)


@each("state", PLAYED)
def test_2_1_the_list_view_has_the_scalar_fields_and_no_others(world: World, state: str) -> None:
    shown = in_list(world, PLAYED[state])
    drawn = state in ("CLOSED", "SETTLED", "DRAWN")
    unknown = {} if drawn else {"jackpotAmount": NULL, "subPrizeTotalUsdc": NULL}
    assert_fields(shown, ROUND_IN_LIST | unknown)


@each("state", PLAYED)
def test_2_1_the_detail_view_adds_ids_numbers_hashes_and_settlement_data(world: World, state: str) -> None:
    shown = in_full(world, PLAYED[state])
    assert shown["state"] == state
    assert set(shown) == set(ROUND)
    if state == "SETTLED":
        assert_fields(shown, ROUND)
    if state == "OPEN":
        assert_fields(shown, {**ROUND, **NOT_SEALED_YET, **NOT_DRAWN_YET})


@each("state", [state for state in PLAYED if state != "OPEN"])
def test_2_1_the_two_views_agree(world: World, state: str) -> None:
    full = in_full(world, PLAYED[state])
    assert in_list(world, PLAYED[state]) == {field: full[field] for field in ROUND_IN_LIST}


def test_2_1_ticketPriceUsdc_is_the_protocol_price(world: World) -> None:
    assert in_full(world, OPEN)["ticketPriceUsdc"] == 3_000_000


def test_2_1_totalTickets_counts_what_takes_part_and_while_selling_what_is_on_record(world: World) -> None:
    assert in_full(world, CLOSED)["totalTickets"] == 2 * TICKETS
    assert in_full(world, OPEN)["totalTickets"] == 8
    assert in_full(world, FAILED)["totalTickets"] == 0


def test_2_1_operator_counts_and_ids_go_together(world: World) -> None:
    shown = in_full(world, CLOSED)
    alba, brio, cava = (world.parties[company].id for company in ("alba", "brio", "cava"))
    assert set(shown["operatorIds"]) == {alba, brio, cava}
    assert set(shown["escrowedOperatorIds"]) == {alba, brio}
    assert shown["excludedOperatorIds"] == [cava]
    counts = (shown["operatorCount"], shown["escrowedOperatorCount"], shown["excludedOperatorCount"])
    assert counts == (3, 2, 1)


def test_2_1_totalDeposited_is_the_price_of_the_escrowed_tickets(world: World) -> None:
    assert in_full(world, CLOSED)["totalDeposited"] == str(2 * TICKETS * PRICE)
    assert in_full(world, OPEN)["totalDeposited"] == "0"


def test_2_1_jackpotWon_is_whether_any_ticket_matched_the_jackpot_number(world: World) -> None:
    won, lost = in_full(world, WON), in_full(world, CLOSED)
    assert won["jackpotWon"] is True
    assert won["jackpotWinnerCount"] > 0
    assert won["winningOperatorId"] in won["operatorIds"]
    assert 0 <= won["winnerIndex"] < won["totalTickets"]
    assert (lost["jackpotWon"], lost["jackpotWinnerCount"]) == (False, 0)


def test_2_1_previousRoundHash_chains_each_round_to_the_one_before(world: World) -> None:
    before = world.read(f"/api/public/rounds/{CLOSED}/proof")["roundHash"]
    assert in_full(world, WON)["previousRoundHash"] == before


@each("number", NUMBERS)
def test_2_1_winning_numbers_lie_in_their_ranges(world: World, number: str) -> None:
    assert 1 <= in_full(world, CLOSED)[number] <= dict(zip(NUMBERS, RANGES, strict=True))[number]
