"""Interface section 4.3: logging in, refreshing and logging out."""

from __future__ import annotations

from typing import Any

from tests.contract.fields import ERROR
from tests.contract.shapes import STRING, Fields, assert_fields, each, exactly
from tests.contract.world import Party, World

TOKENS: Fields = {"accessToken": STRING, "refreshToken": STRING, "expiresIn": exactly(900)}
PATHS = {
    "/api/auth/operator/login": "apiKey",
    "/api/auth/refresh": "refreshToken",
    "/api/auth/logout": "refreshToken",
}


def test_4_3_auth__post_operator_login(world: World, alba: Party) -> None:
    assert_fields(world.send("/api/auth/operator/login", {"apiKey": alba.key}), TOKENS)


def test_4_3_auth__post_refresh(world: World, alba: Party) -> None:
    first = world.log_in(alba)
    second = world.send("/api/auth/refresh", {"refreshToken": first["refreshToken"]})
    assert_fields(second, TOKENS)
    assert second["refreshToken"] != first["refreshToken"]
    refused = world.send("/api/auth/refresh", {"refreshToken": first["refreshToken"]}, status=401)
    assert_fields(refused, ERROR)


def test_4_3_auth__post_logout(world: World, alba: Party) -> None:
    token = {"refreshToken": world.log_in(alba)["refreshToken"]}
    assert_fields(world.send("/api/auth/logout", token), {"success": exactly(True)})
    assert world.post("/api/auth/refresh", token).status_code == 401


@each("path", PATHS)
def test_4_3_body_is_one_field(world: World, path: str) -> None:
    field = PATHS[path]
    bodies: list[Any] = [{}, {field: None}, {field: 1}]
    for body in bodies:
        answer = world.post(path, body)
        assert answer.status_code == 422
        assert list(answer.json()["details"]) == [field]
    assert list(world.post(path, {field: "x", "more": 1}).json()["details"]) == ["more"]


@each("path", PATHS)
def test_4_3_path_takes_POST_and_no_other_method(world: World, path: str) -> None:
    for method in ("GET", "PUT", "PATCH", "DELETE"):
        answer = world.call(method, path)
        assert (answer.status_code, "POST" in answer.headers["Allow"]) == (405, True)
