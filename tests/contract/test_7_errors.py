"""Interface section 7: errors. `code` and `details` are ours: the interface asks for `error` alone."""

from __future__ import annotations

from typing import Any

import pytest
import requests

from deploy.coordinator import here
from tests.contract.fields import ERROR
from tests.contract.shapes import Kind, assert_fields, each, exactly
from tests.contract.world import CLOSED, OPEN, Party, World, form, ticket
from tests.polling import until

ANYTHING = Kind("anything", lambda value: [])


STATUSES = (400, 401, 403, 404, 405, 409, 415, 422)


@pytest.fixture(scope="session")
def answers(world: World) -> dict[int, requests.Response]:
    """An error of each status that a caller can bring about."""
    alba, dora = world.parties["alba"], world.parties["dora"]

    def raw(body: bytes, kind: str) -> requests.Response:
        return here.post(f"{world.url}/api/public/apply", data=body, headers={"Content-Type": kind}, timeout=30)

    return {
        400: raw(b"{", "application/json"),
        401: world.get("/api/operator/me"),
        403: world.post("/api/operator/check-tickets", {"roundId": CLOSED}, dora.headers),
        404: world.get("/api/public/rounds/999999"),
        405: world.post("/api/public/rounds", {}),
        409: world.post("/api/operator/check-tickets", {"roundId": OPEN}, alba.headers),
        415: raw(b"{}", "text/plain"),
        422: world.post("/api/public/apply", {}),
    }


@each("status", STATUSES)
def test_7_error_body__status(answers: dict[int, requests.Response], status: int) -> None:
    """JSON with a string `error`, whatever went wrong."""
    answer = answers[status]
    assert answer.status_code == status
    assert answer.headers["Content-Type"] == "application/json"
    body: dict[str, Any] = answer.json()
    assert_fields(body, {**ERROR, "details": ANYTHING} if "details" in body else ERROR)
    assert ("details" in body) == (status == 422)


def test_7_error_body__413(world: World) -> None:
    status, body = world.announce("/api/public/apply", 1024 * 1024 + 1)
    assert status == 413
    assert_fields(body, ERROR)


def test_7_errors__an_unknown_path_is_404_and_JSON(world: World) -> None:
    for path in ("/", "/nowhere", "/api/public/nowhere", "/api//public/rounds"):
        answer = world.get(path)
        assert answer.status_code == 404
        assert_fields(answer.json(), ERROR)


def test_7_errors__409_of_apply_names_the_pending_application(world: World, company: str) -> None:
    filed = world.send("/api/public/apply", form(company), status=201)
    refused = world.send("/api/public/apply", form(company), status=409)
    assert_fields(refused, {**ERROR, "applicationId": exactly(filed["applicationId"])})


def test_7_errors__201_is_the_status_of_a_successful_apply(world: World, company: str) -> None:
    assert world.post("/api/public/apply", form(company)).status_code == 201


def test_7_errors__401_of_a_receiver_is_a_failed_delivery(world: World) -> None:
    cerrada = world.parties["cerrada"]
    query = "SELECT status, error_class, attempts FROM deliveries WHERE operator_id = %s AND status <> 'pending'"
    outcome = until(lambda: world.rows(query, cerrada.id), within=30)
    assert outcome == [("failed", "status_4xx", 3)]


def test_7_errors__422_names_every_wrong_field(world: World, alba: Party) -> None:
    answer = world.post("/api/public/apply", {"companyName": "", "fax": "1"})
    named = {"companyName", "jurisdiction", "gamingLicenseNumber", "contactEmail", "contactName", "ethereumAddress"}
    assert set(answer.json()["details"]) == named | {"fax"}
    wrong = {"roundId": OPEN, "tickets": [ticket(0), ticket(1) | {"bonus5": 101}]}
    faults = world.post("/api/operator/tickets", wrong, alba.headers).json()["details"]["faults"]
    assert [(fault["index"], fault["ticketId"], fault["field"]) for fault in faults] == [(1, "t-1", "bonus5")]
