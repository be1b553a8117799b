"""Interface section 2.8: an operator application, what it must say and what is shown of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.fields import APPROVED, ONBOARDING, PENDING
from tests.contract.shapes import Kind, assert_fields, assert_is, each, each_field
from tests.contract.world import Party, World, form

APPLY = "/api/public/apply"
REQUIRED = (*("companyName", "jurisdiction", "gamingLicenseNumber", "contactEmail", "contactName", "ethereumAddress"),)
OPTIONAL = {"website": "https://somebody.example/about", "description": "We sell tickets."}
WRONG: dict[str, list[Any]] = {
    "companyName": ["", "  ", 7, None],
    "jurisdiction": ["", "  ", 7, None],
    "gamingLicenseNumber": ["", "  ", 7, None],
    "contactEmail": ["", "nobody", "nobody@", "@nobody.example", "a b@c.example", 7, None],
    "contactName": ["", "  ", 7, None],
    "ethereumAddress": ["", "0x", "0x" + "g" * 40, "0x" + "a" * 39, "0x" + "a" * 41, "a" * 42, 7, None],
    "website": ["nowhere", "javascript:alert(1)", 7],
    "description": [7, ["We sell tickets."]],
}


@pytest.fixture(scope="session")
def pending(world: World) -> dict[str, Any]:
    """The status of an application that nobody has looked at."""
    return status(world, world.send(APPLY, form("pending"), status=201))


@pytest.fixture(scope="session")
def approved(world: World) -> dict[str, Any]:
    """The status of an application that was approved."""
    filed = world.send(APPLY, form("approved"), status=201)
    path = f"/api/admin/applications/{filed['applicationId']}/approve"
    world.send(path, {"reviewNote": "welcome"}, world.admin)
    return status(world, filed)


def status(world: World, filed: dict[str, str]) -> dict[str, Any]:
    path = f"/api/public/application-status/{filed['applicationId']}"
    shown: dict[str, Any] = world.read(path, {"X-Application-Token": filed["applicationToken"]})
    return shown


@each("field", REQUIRED)
def test_2_8_application_required__field(world: World, company: str, field: str) -> None:
    body = form(company)
    del body[field]
    answer = world.post(APPLY, body)
    assert answer.status_code == 422
    assert list(answer.json()["details"]) == [field]


@each("field", OPTIONAL)
def test_2_8_application_optional__field(world: World, company: str, field: str) -> None:
    world.send(APPLY, form(company), status=201)
    world.send(APPLY, form(f"with-{company}") | {field: OPTIONAL[field]}, status=201)


@pytest.mark.parametrize(
    ("field", "value"),
    [(field, value) for field, values in WRONG.items() for value in values],
    ids=[f"{field} is not {value!r}" for field, values in WRONG.items() for value in values],
)
def test_2_8_application_validation__field(world: World, company: str, field: str, value: Any) -> None:
    answer = world.post(APPLY, form(company) | {field: value})
    assert answer.status_code == 422
    assert list(answer.json()["details"]) == [field]
    licence = form(company)["gamingLicenseNumber"]
    assert world.rows("SELECT id FROM applications WHERE gaming_license_number = %s", licence) == []


def test_2_8_application_has_no_other_field(world: World, company: str) -> None:
    answer = world.post(APPLY, form(company) | {"fax": "1"})
    assert answer.status_code == 422
    assert list(answer.json()["details"]) == ["fax"]


@each_field(PENDING)
def test_2_8_application_pending__field(pending: dict[str, Any], field: str, kind: Kind) -> None:
    assert_is(pending[field], kind)


@each_field(APPROVED)
def test_2_8_application_approved__field(approved: dict[str, Any], field: str, kind: Kind) -> None:
    assert_is(approved[field], kind)


@each_field(ONBOARDING)
def test_2_8_onboarding__field(approved: dict[str, Any], field: str, kind: Kind) -> None:
    assert_is(approved["onboarding"][field], kind)


@each("field", ["operatorId", "onboarding"])
def test_2_8_application_pending_does_not_have(pending: dict[str, Any], field: str) -> None:
    assert field not in pending


def test_2_8_an_application_has_these_fields_and_no_others(pending: dict[str, Any], approved: dict[str, Any]) -> None:
    assert_fields(pending, PENDING)
    assert_fields(approved, APPROVED)


def test_2_8_operatorId_is_the_operator_that_was_made(world: World, newcomer: Party) -> None:
    assert world.read("/api/operator/me", newcomer.headers)["operatorId"] == newcomer.id
