"""Interface section 2.11: a manifest submission, field by field."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from tests.contract.shapes import each
from tests.contract.world import Party, World, manifest, ticket

PATH = "/api/operator/manifest"
FIELDS = ("roundId", "manifestJson", "manifestHash", "ticketCount")
WRONG: list[tuple[str, Any]] = [
    ("roundId", "1"),
    ("roundId", 0),
    ("roundId", None),
    ("manifestJson", {"roundId": 1}),
    ("manifestJson", None),
    ("manifestHash", "0" * 64),
    ("manifestHash", "0" * 63),
    ("manifestHash", "X" * 64),
    ("manifestHash", None),
    ("ticketCount", 2),
    ("ticketCount", -1),
    ("ticketCount", "3"),
    ("ticketCount", None),
]


@pytest.fixture
def sold(world: World, newcomer: Party, fresh_round: Callable[[], int]) -> int:
    """A round with three tickets of the newcomer."""
    round_id = fresh_round()
    batch = {"roundId": round_id, "tickets": [ticket(place) for place in range(3)]}
    world.send("/api/operator/tickets", batch, newcomer.headers)
    return round_id


@each("field", FIELDS)
def test_2_11_manifest__field(world: World, newcomer: Party, sold: int, field: str) -> None:
    body = manifest(sold, 3)
    world.send(PATH, body, newcomer.headers)
    column = {"roundId": "round_id", "manifestJson": "manifest_json", "manifestHash": "manifest_hash"}
    query = f"SELECT {column.get(field, 'ticket_count')} FROM manifests WHERE round_id = %s"
    assert world.rows(query, sold) == [(body[field],)]


@each("field", FIELDS)
def test_2_11_manifest_required__field(world: World, newcomer: Party, sold: int, field: str) -> None:
    body = manifest(sold, 3)
    del body[field]
    answer = world.post(PATH, body, newcomer.headers)
    assert answer.status_code == 422
    assert list(answer.json()["details"]) == [field]


@pytest.mark.parametrize(("field", "value"), WRONG, ids=[f"{field} is not {value!r}" for field, value in WRONG])
def test_2_11_manifest_validation__field(world: World, newcomer: Party, sold: int, field: str, value: Any) -> None:
    answer = world.post(PATH, manifest(sold, 3) | {field: value}, newcomer.headers)
    assert answer.status_code == 422
    assert list(answer.json()["details"]) == [field]
    assert world.rows("SELECT count(*) FROM manifests WHERE round_id = %s", sold) == [(0,)]


@each("text", ["nothing", "[]", '{"roundId": 1, "roundId": 1}', ""])
def test_2_11_manifestJson_is_JSON_text_of_one_object_and_not(
    world: World, newcomer: Party, sold: int, text: str
) -> None:
    digest = hashlib.sha256(text.encode()).hexdigest()
    body = manifest(sold, 3) | {"manifestJson": text, "manifestHash": digest}
    assert world.post(PATH, body, newcomer.headers).status_code == 422


def test_2_11_manifestHash_is_the_sha256_of_the_text_as_sent(world: World, newcomer: Party, sold: int) -> None:
    text = '{ "note" : "é, byte for byte" }'
    digest = hashlib.sha256(text.encode()).hexdigest()
    body = {"roundId": sold, "manifestJson": text, "manifestHash": digest, "ticketCount": 3}
    assert world.post(PATH, body, newcomer.headers).status_code == 200
    recorded = "SELECT manifest_json, manifest_hash FROM manifests WHERE round_id = %s"
    assert world.rows(recorded, sold) == [(text, digest)]


def test_2_11_a_manifest_has_no_other_field(world: World, newcomer: Party, sold: int) -> None:
    answer = world.post(PATH, manifest(sold, 3) | {"note": "x"}, newcomer.headers)
    assert answer.status_code == 422
