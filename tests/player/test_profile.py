"""A player's profile, and how well she is known."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from flask.testing import FlaskClient

from player.models.kyc import decide_kyc
from player.models.session import transaction
from protocol.errors import Conflict, NotFound
from tests.player.factories import APlayer, a_player


def _ask(client: FlaskClient, who: APlayer, level: str, **more: str) -> Any:
    return client.post("/api/player/kyc", json={"level": level, **more}, headers=who.headers)


def _decide(request_id: int, approve: bool) -> None:
    with transaction() as session:
        decide_kyc(session, request_id, approve, "Eve", "seen")


def test_a_player_reads_her_profile_and_changes_her_name(client: FlaskClient) -> None:
    who = a_player()
    before = client.get("/api/player/profile", headers=who.headers).json
    assert before == client.get("/api/auth/me", headers=who.headers).json
    changed = client.patch("/api/player/profile", json={"displayName": "Änne"}, headers=who.headers)
    assert changed.json == {**before, "displayName": "Änne"}
    assert client.get("/api/player/profile", headers=who.headers).json == changed.json
    refused = client.patch("/api/player/profile", json={"email": "b@example.com"}, headers=who.headers)
    assert refused.status_code == 422


def test_a_higher_level_is_asked_for_and_decided_by_staff(client: FlaskClient) -> None:
    who = a_player()
    assert client.get("/api/player/kyc", headers=who.headers).json == {"kycLevel": "none", "requests": [], "count": 0}
    asked = _ask(client, who, "basic", documentReference="D-1")
    assert (asked.status_code, asked.json["status"], asked.json["decidedAt"]) == (201, "pending", None)
    assert asked.json["documentReference"] == "D-1"
    assert _ask(client, who, "full").json["code"] == "kyc_pending"
    _decide(asked.json["id"], approve=True)
    with pytest.raises(Conflict) as twice:
        _decide(asked.json["id"], approve=False)
    assert twice.value.code == "kyc_decided"
    assert _ask(client, who, "basic").json["code"] == "kyc_reached"
    _decide(_ask(client, who, "full").json["id"], approve=False)
    shown = client.get("/api/player/kyc", headers=who.headers).json
    assert (shown["kycLevel"], shown["count"]) == ("basic", 2)
    assert [one["status"] for one in shown["requests"]] == ["rejected", "approved"]
    assert shown["requests"][0]["reason"] == "seen"
    assert client.get("/api/player/kyc", headers=a_player().headers).json["count"] == 0


def test_what_is_no_request_is_refused(client: FlaskClient) -> None:
    who = a_player()
    for body in ({"level": "none"}, {"level": "gold"}, {}, {"level": "full", "documentReference": ""}):
        assert client.post("/api/player/kyc", json=body, headers=who.headers).status_code == 422, body


def test_of_two_requests_and_of_two_decisions_one_counts(client: FlaskClient) -> None:
    who = a_player()
    with ThreadPoolExecutor(2) as two:
        answers = list(two.map(lambda level: _ask(client.application.test_client(), who, level), ["basic", "full"]))
    assert sorted(answer.status_code for answer in answers) == [201, 409]
    request_id = next(answer.json["id"] for answer in answers if answer.status_code == 201)

    def refused(approve: bool) -> bool:
        try:
            _decide(request_id, approve)
        except Conflict:
            return True
        return False

    with ThreadPoolExecutor(2) as two:
        assert sorted(two.map(refused, [True, False])) == [False, True]
    with pytest.raises(NotFound):
        _decide(4711, approve=True)
