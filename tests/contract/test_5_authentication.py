"""Interface section 5: who is let in with what, and how long a credential lives."""

from __future__ import annotations

import time
from typing import Any

import jwt
import pytest

from tests.contract.fields import ERROR
from tests.contract.shapes import assert_fields, each
from tests.contract.webhooks import delivered, signature
from tests.contract.world import CLOSED, Party, World, form

OPERATORS_ONLY = (
    *("POST tickets", "POST manifest", "POST check-tickets", "POST heartbeat", "PUT webhook", "GET rounds", "GET me"),
    *("POST test-webhook", "POST test-webhook/all", "GET webhook-logs"),
)
WRONG: dict[str, dict[str, str]] = {
    "nothing": {},
    "an unknown key": {"X-Service-Key": "sk_0123456789abcdef_" + "0" * 64},
    "no key at all": {"X-Service-Key": "nonsense"},
    "an empty key": {"X-Service-Key": ""},
    "no token at all": {"Authorization": "Bearer nonsense"},
    "another scheme": {"Authorization": "Basic b3BlcmF0b3I6c2VjcmV0"},
}


def me(world: World, headers: dict[str, str]) -> int:
    """The status of asking who one is."""
    status: int = world.get("/api/operator/me", headers).status_code
    return status


@each("path", ["rounds", f"rounds/{CLOSED}", f"draw/{CLOSED}", "history", "jackpot", "odds", "stats", "operators"])
def test_5_public_path_is_open_to_anybody(world: World, path: str) -> None:
    assert world.get(f"/api/public/{path}").status_code == 200
    assert world.get(f"/api/public/{path}", {"X-Service-Key": "nonsense"}).status_code == 200


def test_5_scope__public_endpoints_need_nothing(world: World) -> None:
    assert world.get("/api/public/rounds").status_code == 200
    assert world.get("/health").status_code == 200


def test_5_scope__application_status_needs_X_Application_Token(world: World, company: str) -> None:
    filed, other = (world.send("/api/public/apply", form(f"{company}-{n}"), status=201) for n in (1, 2))
    path = f"/api/public/application-status/{filed['applicationId']}"
    assert world.get(path, {"X-Application-Token": filed["applicationToken"]}).status_code == 200
    for headers in ({}, {"X-Application-Token": ""}, {"X-Application-Token": other["applicationToken"]}):
        answer = world.get(path, headers)
        assert answer.status_code == 401
        assert_fields(answer.json(), ERROR)


def test_5_scope__operator_endpoints_take_X_Service_Key(world: World, alba: Party) -> None:
    assert world.read("/api/operator/me", {"X-Service-Key": alba.key})["operatorId"] == alba.id


def test_5_scope__operator_endpoints_take_a_Bearer_token(world: World, alba: Party) -> None:
    token = world.log_in(alba)["accessToken"]
    assert world.read("/api/operator/me", {"Authorization": f"Bearer {token}"})["operatorId"] == alba.id


def test_5_rule__1_login_exchanges_an_API_key_for_a_pair_of_tokens(world: World, alba: Party) -> None:
    pair = world.log_in(alba)
    assert me(world, {"Authorization": f"Bearer {pair['accessToken']}"}) == 200
    assert world.post("/api/auth/refresh", {"refreshToken": pair["refreshToken"]}).status_code == 200
    assert world.post("/api/auth/operator/login", {"apiKey": alba.key + "0"}).status_code == 401


def test_5_rule__2_an_access_token_is_a_JWT_of_900_seconds(world: World, alba: Party) -> None:
    pair = world.log_in(alba)
    claims = jwt.decode(pair["accessToken"], options={"verify_signature": False})
    assert claims["exp"] - claims["iat"] == pair["expiresIn"] == 900
    assert abs(claims["iat"] - time.time()) < 60

    kid, secret = world.environment["JWT_KEYS"].split(",")[0].split(":", 1)
    assert jwt.get_unverified_header(pair["accessToken"])["kid"] == kid

    def aged(seconds: int) -> dict[str, str]:
        older = claims | {"iat": claims["iat"] - seconds, "exp": claims["exp"] - seconds}
        return {"Authorization": f"Bearer {jwt.encode(older, secret, algorithm='HS256', headers={'kid': kid})}"}

    assert me(world, aged(60)) == 200
    assert me(world, aged(901)) == 401


def test_5_rule__2_a_refresh_token_lives_7_days(world: World, newcomer: Party) -> None:
    query = "SELECT extract(epoch FROM expires_at - created_at) FROM refresh_tokens WHERE operator_id = %s"
    token = {"refreshToken": world.log_in(newcomer)["refreshToken"]}
    [(seconds,)] = world.rows(query, newcomer.id)
    assert float(seconds) == pytest.approx(7 * 24 * 3600, abs=5)
    world.rows(
        "UPDATE refresh_tokens SET expires_at = expires_at - interval '7 days' WHERE operator_id = %s", newcomer.id
    )
    assert world.post("/api/auth/refresh", token).status_code == 401


def test_5_rule__3_refreshing_revokes_the_used_token(world: World, alba: Party) -> None:
    first = world.log_in(alba)["refreshToken"]
    second = world.send("/api/auth/refresh", {"refreshToken": first})["refreshToken"]
    assert world.post("/api/auth/refresh", {"refreshToken": first}).status_code == 401
    # Somebody else holds the token as well: what was made from it is revoked, too.
    assert world.post("/api/auth/refresh", {"refreshToken": second}).status_code == 401


def test_5_rule__3_logout_revokes_the_given_token(world: World, alba: Party) -> None:
    out, stays = (world.log_in(alba)["refreshToken"] for _ in range(2))
    world.send("/api/auth/logout", {"refreshToken": out})
    assert world.post("/api/auth/refresh", {"refreshToken": out}).status_code == 401
    assert world.post("/api/auth/refresh", {"refreshToken": stays}).status_code == 200


def test_5_rule__4_the_API_key_comes_with_the_approval_and_never_again(world: World, company: str) -> None:
    filed = world.send("/api/public/apply", form(company), status=201)
    path = f"/api/admin/applications/{filed['applicationId']}/approve"
    key = world.send(path, {"reviewNote": "welcome"}, world.admin)["apiKey"]
    assert me(world, {"X-Service-Key": key}) == 200
    assert world.post(path, {"reviewNote": "again"}, world.admin).status_code == 409
    status = f"/api/public/application-status/{filed['applicationId']}"
    assert key not in world.get(status, {"X-Application-Token": filed["applicationToken"]}).text


def test_5_rule__5_webhooks_are_signed(world: World, alba: Party) -> None:
    request = delivered(world, "round.opened")
    assert request.headers["X-Service-Signature"] == signature(request, alba.key)


def test_5_rule__6_wrong_credentials_are_401(world: World) -> None:
    for headers in WRONG.values():
        answer = world.get("/api/operator/me", headers)
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"]
        assert_fields(answer.json(), ERROR)


@each("call", OPERATORS_ONLY)
def test_5_operators_alone_may(world: World, call: str) -> None:
    method, path = call.split()
    answer = world.call(method, f"/api/operator/{path}")
    assert answer.status_code == 401
    assert_fields(answer.json(), ERROR)


def test_5_rule__7_admins_have_keys_of_their_own(world: World, alba: Party) -> None:
    path = "/api/admin/applications"
    assert world.get(path, world.admin).status_code == 200
    wrong: list[dict[str, str]] = [{}, alba.headers, {"X-Service-Admin-Key": alba.key}]
    for headers in wrong:
        answer = world.get(path, headers)
        assert answer.status_code == 401
        assert_fields(answer.json(), ERROR)
    assert me(world, world.admin) == 401


def test_5_a_suspended_operator_is_forbidden(world: World, newcomer: Party) -> None:
    token = {"Authorization": f"Bearer {world.log_in(newcomer)['accessToken']}"}
    world.rows("UPDATE operators SET active = false WHERE id = %s", newcomer.id)
    for headers in (newcomer.headers, token):
        assert me(world, headers) == 403
    body: dict[str, Any] = {"apiKey": newcomer.key}
    assert world.post("/api/auth/operator/login", body).status_code == 403
