"""Interface sections 2.6 and 2.7: an operator, in the list, alone, and as it sees itself."""

from __future__ import annotations

from typing import Any

from tests.contract.fields import OPERATOR, OPERATOR_ADDS, PROFILE
from tests.contract.shapes import NULL, Kind, assert_fields, assert_is, each_field, exactly
from tests.contract.world import Party, World

BONDED = {
    "onChainId": exactly("chain 7"),
    "onChainBondAmount": exactly("5000000000"),
    "onChainBondStatus": exactly("active"),
    "onChainLastAttestation": exactly("2026-01-31T20:00:00.000Z"),
}


def in_list(world: World, party: Party) -> dict[str, Any]:
    listed = world.read("/api/public/operators")["operators"]
    [shown] = [entry for entry in listed if entry["operatorId"] == party.id]
    found: dict[str, Any] = shown
    return found


@each_field(OPERATOR)
def test_2_6_operator_in_list__field(world: World, alba: Party, field: str, kind: Kind) -> None:
    assert_is(in_list(world, alba)[field], kind)


@each_field(OPERATOR, OPERATOR_ADDS)
def test_2_6_operator_in_full__field(world: World, alba: Party, field: str, kind: Kind) -> None:
    assert_is(world.read(f"/api/public/operators/{alba.id}")[field], kind)


@each_field(PROFILE)
def test_2_7_own_profile__field(world: World, alba: Party, field: str, kind: Kind) -> None:
    assert_is(world.read("/api/operator/me", alba.headers)[field], kind)


@each_field({"lastHeartbeat": NULL, **dict.fromkeys(BONDED, NULL)})
def test_2_7_own_profile_of_a_newcomer__field(world: World, newcomer: Party, field: str, kind: Kind) -> None:
    assert_is(world.read("/api/operator/me", newcomer.headers)[field], kind)


@each_field(BONDED)
def test_2_7_own_profile_of_a_bonded_operator__field(world: World, newcomer: Party, field: str, kind: Kind) -> None:
    world.rows(
        "UPDATE operators SET on_chain_id = 'chain 7', on_chain_bond_amount = 5000000000, "
        "on_chain_bond_status = 'active', on_chain_last_attestation = '2026-01-31T20:00:00Z' WHERE id = %s",
        newcomer.id,
    )
    assert_is(world.read("/api/operator/me", newcomer.headers)[field], kind)


def test_2_7_an_operator_has_these_fields_and_no_others_so_no_key_hash(world: World, alba: Party) -> None:
    assert_fields(in_list(world, alba), OPERATOR)
    assert_fields(world.read(f"/api/public/operators/{alba.id}"), {**OPERATOR, **OPERATOR_ADDS})
    assert_fields(world.read("/api/operator/me", alba.headers), PROFILE)


def test_2_7_the_three_views_agree(world: World) -> None:
    brio = world.parties["brio"]
    own = world.read("/api/operator/me", brio.headers)
    full = world.read(f"/api/public/operators/{brio.id}")
    assert full == {field: own[field] for field in (*OPERATOR, *OPERATOR_ADDS)}
    assert in_list(world, brio) == {field: own[field] for field in OPERATOR}


def test_2_7_the_counters_tell_what_the_operator_did(world: World) -> None:
    def counters(company: str) -> tuple[int, ...]:
        shown = world.read("/api/operator/me", world.parties[company].headers)
        names = ("totalRoundsParticipated", "totalRoundsEscrowed", "totalRoundsExcluded", "totalRoundsWon")
        return tuple(shown[counter] for counter in names)

    # Round 1 nobody joined; cava sealed its tickets in round 2 and did not pay; the jackpot of round 3 is both others'.
    assert counters("alba") == (3, 3, 1, 1)
    assert counters("cava") == (1, 0, 1, 0)
    assert counters("dora") == (0, 0, 0, 0)
