"""Interface section 3: the states of a round and of an application, as responses show them."""

from __future__ import annotations

from tests.contract.fields import NUMBERS
from tests.contract.shapes import each
from tests.contract.world import CLOSED, DRAWN, FAILED, OPEN, Party, World, form


def test_3_round_state__OPEN(world: World) -> None:
    shown = world.read(f"/api/public/rounds/{OPEN}")
    assert shown["state"] == "OPEN"
    assert shown["fullManifestHash"] is None


def test_3_round_state__SEALING(world: World) -> None:
    assert world.seen["SEALING"]["fullManifestHash"] is None


def test_3_round_state__SEALED(world: World) -> None:
    shown = world.seen["SEALED"]
    assert shown["fullManifestHash"]
    assert shown["effectiveManifestHash"] is None


def test_3_round_state__ESCROWED(world: World) -> None:
    shown = world.seen["ESCROWED"]
    assert shown["effectiveManifestHash"]
    assert {shown[number] for number in NUMBERS} == {None}


def test_3_round_state__DRAWN(world: World) -> None:
    shown = world.seen["DRAWN"]
    assert None not in {shown[number] for number in NUMBERS}
    assert shown["settlementHash"] is None


def test_3_round_state__SETTLED(world: World) -> None:
    assert world.seen["SETTLED"]["settlementHash"]


def test_3_round_state__CLOSED(world: World) -> None:
    shown = world.read(f"/api/public/rounds/{CLOSED}")
    assert shown == world.seen["CLOSED"]
    assert shown["settlementHash"] == world.seen["SETTLED"]["settlementHash"]


def test_3_round_state__FAILED(world: World) -> None:
    shown = world.read(f"/api/public/rounds/{FAILED}")
    assert (shown["state"], shown["failureReason"]) == ("FAILED", "no manifests")


def test_3_transition__OPEN_manifest_accepted_OPEN(world: World, company: str, newcomer: Party) -> None:
    other = world.approve(f"also-{company}")
    round_id = world.open_round([newcomer, other])
    for sealed, party in enumerate((newcomer, other), 1):
        answer = world.submit(party, round_id, 1)
        assert answer == {
            "success": True,
            "roundId": round_id,
            "state": "OPEN",
            "sealedCount": sealed,
            "totalInvited": 2,
        }
    assert world.read(f"/api/public/rounds/{round_id}")["state"] == "OPEN"


def test_3_application_status__pending(world: World, company: str) -> None:
    assert world.send("/api/public/apply", form(company), status=201)["status"] == "pending"


@each("verdict", ["approved", "rejected"])
def test_3_application_status__reviewed(world: World, company: str, verdict: str) -> None:
    filed = world.send("/api/public/apply", form(company), status=201)
    path = f"/api/admin/applications/{filed['applicationId']}/{'approve' if verdict == 'approved' else 'reject'}"
    world.send(path, {"reviewNote": "seen"}, world.admin)
    token = {"X-Application-Token": filed["applicationToken"]}
    shown = world.read(f"/api/public/application-status/{filed['applicationId']}", token)
    assert shown["status"] == verdict


def test_3_check_tickets__once_the_round_is_DRAWN(world: World, alba: Party) -> None:
    path = "/api/operator/check-tickets"
    assert world.post(path, {"roundId": OPEN}, alba.headers).status_code == 409
    assert world.post(path, {"roundId": DRAWN}, alba.headers).status_code == 200
