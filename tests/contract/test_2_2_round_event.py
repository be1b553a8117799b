"""Interface sections 2.2 and 6.1: the event log of a round."""

from __future__ import annotations

from typing import Any

from tests.contract.fields import EVENT_DATA, NUMBERS
from tests.contract.shapes import (
    NUMBER,
    STRING,
    TIMESTAMP,
    Fields,
    Kind,
    assert_fields,
    assert_is,
    each,
    each_field,
    exactly,
    object_of,
)
from tests.contract.world import CLOSED, FAILED, OPEN, TICKETS, World

ENTRY: Fields = {
    "type": STRING,
    "roundId": NUMBER,
    "timestamp": TIMESTAMP,
    "data": Kind("an object", lambda value: [] if isinstance(value, dict) else [f"{value!r} is not an object"]),
}


def log(world: World, round_id: int) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = world.read(f"/api/public/rounds/{round_id}/events")["events"]
    return entries


@each_field(ENTRY)
def test_2_2_round_event__field(world: World, field: str, kind: Kind) -> None:
    for entry in log(world, CLOSED):
        assert_is(entry[field], kind)


@each("kind", EVENT_DATA)
def test_2_2_round_event__data(world: World, kind: str) -> None:
    entries = [entry for entry in log(world, CLOSED) if entry["type"] == kind]
    assert entries
    for entry in entries:
        assert_fields(
            entry, ENTRY | {"type": exactly(kind), "roundId": exactly(CLOSED), "data": object_of(EVENT_DATA[kind])}
        )


def test_2_2_the_log_of_a_whole_round_in_its_order(world: World) -> None:
    kinds = [entry["type"] for entry in log(world, CLOSED)]
    assert kinds == ["ROUND_OPENED", *["MANIFEST_SUBMITTED"] * 3, "ROUND_SEALED", "ROUND_DRAWN", "ROUND_SETTLED"]


def test_2_2_the_log_of_a_failed_round_ends_where_it_failed(world: World) -> None:
    assert [entry["type"] for entry in log(world, FAILED)] == ["ROUND_OPENED"]


def test_2_2_the_values_are_the_rounds_own(world: World) -> None:
    data = {entry["type"]: entry["data"] for entry in log(world, CLOSED)}
    shown = world.read(f"/api/public/rounds/{CLOSED}")
    assert data["MANIFEST_SUBMITTED"]["ticketCount"] == TICKETS
    assert data["ROUND_SEALED"] == {"sealedCount": 3}
    assert data["ROUND_DRAWN"] == {number: shown[number] for number in NUMBERS}
    assert data["ROUND_SETTLED"] == {"settlementHash": shown["settlementHash"]}


def test_2_2_manifests_are_logged_one_by_one_with_who_sent_them(world: World) -> None:
    submitted = [entry["data"] for entry in log(world, OPEN) if entry["type"] == "MANIFEST_SUBMITTED"]
    assert submitted == [{"operatorId": world.parties["alba"].id, "ticketCount": 5}]


def test_6_1_log__get_rounds_id_events_shows_these_entries(world: World) -> None:
    entries = log(world, CLOSED)
    assert {entry["type"] for entry in entries} == set(EVENT_DATA)
    assert [entry["timestamp"] for entry in entries] == sorted(entry["timestamp"] for entry in entries)
