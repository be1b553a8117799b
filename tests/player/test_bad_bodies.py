"""Bodies that nobody should send: every operation refuses them with a reason, and none of them breaks anything.

One rule: ``BODIES`` has an acceptable body for every operation that takes one; one without a row fails.
"""

from __future__ import annotations

import json
from typing import Any

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from player.models.session import transaction
from player.models.staff import issue_staff_key
from tests.player.factories import NUMBERS as PICK
from tests.player.factories import PASSWORD, a_player
from tests.player.operations import Operation, operations

BODIES: dict[str, dict[str, Any]] = {
    "POST /api/auth/register": {"email": "eve@example.com", "password": PASSWORD, "displayName": "Eve"},
    "POST /api/auth/login": {"email": "eve@example.com", "password": PASSWORD},
    "POST /api/auth/refresh": {"refreshToken": "x"},
    "POST /api/auth/logout": {"refreshToken": "x"},
    "POST /api/auth/password/forgot": {"email": "eve@example.com"},
    "POST /api/auth/password/reset": {"token": "x", "newPassword": PASSWORD},
    "PUT /api/auth/password": {"currentPassword": PASSWORD, "newPassword": PASSWORD + "2"},
    "PATCH /api/player/profile": {"displayName": "Eve"},
    "POST /api/player/kyc": {"level": "basic", "documentReference": "x"},
    "POST /api/player/limits": {"dailyLimit": "5", "weeklyLimit": "6", "monthlyLimit": "7"},
    "POST /api/player/self-exclusion": {"durationDays": 1},
    "POST /api/player/tickets/purchase": PICK,
    "POST /api/player/deposits": {"amount": "5"},
    "POST /api/player/withdrawals": {"amount": "5", "destination": "my bank"},
    "POST /api/admin/kyc/{request_id}/decide": {"approve": True, "reason": "a reason"},
    "POST /api/admin/rounds/{round_id}/look": {"reason": "a reason"},
    "POST /api/admin/players/{player_id}/suspend": {"reason": "a reason"},
    "POST /api/admin/players/{player_id}/reinstate": {"reason": "a reason"},
    "POST /api/admin/players/{player_id}/credit": {"amountUsdc": "5", "reference": "case 7", "reason": "a reason"},
}
NOT_JSON = [b"", b"{", b"\xff", b'{"a": NaN}', b'{"a": 1, "a": 2}', b"[" * 100_000, b'{"a": 1} x', b"\xef\xbb\xbf{}"]
NOT_AN_OBJECT = [b"null", b"[]", b'"x"', b"1", b"true"]
ODD: list[Any] = [None, True, -1, 1.5, 10**30, [], {"a": 1}, "", "x" * 100_000, "\0", "\ud800", "9" * 40, "' OR 1=1 --"]


def test_every_operation_with_a_body_is_tried(client: FlaskClient) -> None:
    taking = {str(each) for each in operations(client.application) if "requestBody" in each.told}
    assert taking == set(BODIES)


def test_what_is_no_json_object_is_refused(client: FlaskClient) -> None:
    for each in _taking_bodies(client):
        headers = _headers(client, each)
        for raw in NOT_JSON:
            _refused(_send(client, each, raw, headers), 400, f"{each} {raw[:20]!r}")
        for raw in NOT_AN_OBJECT:
            _refused(_send(client, each, raw, headers), 422, f"{each} {raw!r}")
        good = json.dumps(BODIES[str(each)]).encode()
        for label in ("", "text/plain", "application/x-www-form-urlencoded"):
            answer = client.open(each.url(), method=each.method, data=good, content_type=label, headers=headers)
            _refused(answer, 415, f"{each} as {label}")
        _refused(_send(client, each, b'{"a": "' + b"x" * 300_000 + b'"}', headers), 413, str(each))


def test_odd_values_and_unknown_fields_never_break_anything(client: FlaskClient) -> None:
    for each in _taking_bodies(client):
        good, headers = BODIES[str(each)], _headers(client, each)
        _refused(_send(client, each, json.dumps(good | {"unknown": 1}).encode(), headers), 422, str(each))
        for field in good:
            for odd in ODD:
                answer = _send(client, each, json.dumps(good | {field: odd}).encode(), headers)
                about = f"{each} {field}={str(odd)[:20]!r}"
                assert answer.status_code < 500, about
                if isinstance(odd, (dict, list)) and not isinstance(good[field], (dict, list)):
                    _refused(answer, 422, about)
                    assert field in answer.json["details"], about


def _taking_bodies(client: FlaskClient) -> list[Operation]:
    return [each for each in operations(client.application) if "requestBody" in each.told]


def _headers(client: FlaskClient, each: Operation) -> dict[str, str]:
    if each.credential == "accessToken":
        return a_player().headers
    if each.credential == "staffKey":
        with transaction() as session:
            return {"X-Admin-Key": issue_staff_key(session, str(each))[1]}
    return {}


def _send(client: FlaskClient, each: Operation, raw: bytes, headers: dict[str, str]) -> TestResponse:
    kind = "application/json"
    return client.open(each.url(), method=each.method, data=raw, content_type=kind, headers=headers)


def _refused(answer: TestResponse, status: int, about: str) -> None:
    assert answer.status_code == status, f"{about}: {answer.status_code} {answer.text[:300]}"
    assert set(answer.json) <= {"error", "code", "details"}, about
    assert answer.json["error"], about
    assert answer.json["code"], about
    assert len(answer.data) < 5_000, about
