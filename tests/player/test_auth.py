"""Registering, logging in, and how long that lasts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from argon2 import PasswordHasher
from flask.testing import FlaskClient
from sqlalchemy import text, update

from player.models.players import Player
from player.models.session import transaction
from player.models.sessions import PlayerSession, RefreshToken
from tests.player.factories import PASSWORD, as_bearer, registered

ANA = {"email": "ana@example.com", "password": PASSWORD}


def _status(answer: Any) -> tuple[int, str]:
    return answer.status_code, (answer.json or {}).get("code", "")


def _refresh(client: FlaskClient, token: str) -> Any:
    return client.post("/api/auth/refresh", json={"refreshToken": token})


def _me(client: FlaskClient, tokens: dict[str, Any]) -> Any:
    return client.get("/api/auth/me", headers=as_bearer(tokens))


def test_a_player_registers_logs_in_and_is_known(client: FlaskClient) -> None:
    body = registered(client)
    assert set(body) == {"player", "tokens"}
    assert set(body["tokens"]) == {"accessToken", "refreshToken", "expiresIn"}
    assert body["tokens"]["expiresIn"] == 900
    assert body["player"].pop("createdAt").endswith("Z")
    assert body["player"] == {"id": 1, "email": "ana@example.com", "displayName": "Ana", "kycLevel": "none"}
    login = client.post("/api/auth/login", json={**ANA, "email": "ANA@Example.com"})
    assert login.status_code == 200
    assert set(login.json) == {"player", "tokens"}
    assert _me(client, login.json["tokens"]).json == login.json["player"]


NOT_AN_ACCOUNT: list[dict[str, Any]] = [
    {"email": "ana"},
    {"email": "ana@example.com\r\nBcc: all@example.com"},
    {"email": "änä@example.com"},
    {"email": '"a\x01b"@example.com'},
    {"email": "a" * 250 + "@example.com"},
    {"email": None},
    {"password": "too short"},
    {"password": "x" * 129},
    {"password": " " * 12},
    {"password": 1234567890},
    {"password": "ANA@example.com"},
    {"displayName": ""},
    {"displayName": "x" * 81},
    {"displayName": "a\0b"},
    {"kycLevel": "full"},
]


def test_what_is_no_account_is_refused(client: FlaskClient) -> None:
    for change in NOT_AN_ACCOUNT:
        answer = client.post("/api/auth/register", json={**ANA, "displayName": "Ana", **change})
        assert answer.status_code == 422, (change, answer.text)
        assert PASSWORD not in answer.text


def test_one_address_has_one_account_whatever_its_case(client: FlaskClient) -> None:
    def register(email: str) -> Any:
        body = {"email": email, "password": PASSWORD, "displayName": "Ana"}
        return client.application.test_client().post("/api/auth/register", json=body)

    with ThreadPoolExecutor(2) as two:
        answers = list(two.map(register, ["ana@example.com", "Ana@example.com"]))
    assert sorted(map(_status, answers)) == [(201, ""), (409, "email_taken")]
    assert _status(register("ANA@EXAMPLE.COM")) == (409, "email_taken")


def test_a_wrong_login_looks_the_same_whoever_it_names(client: FlaskClient) -> None:
    registered(client)
    wrong = client.post("/api/auth/login", json={**ANA, "password": "something else"})
    nobody = client.post("/api/auth/login", json={**ANA, "email": "bob@example.com"})
    assert _status(wrong) == (401, "invalid_credentials")
    assert (wrong.data, wrong.status) == (nobody.data, nobody.status)


def test_a_refresh_token_is_good_once_and_ends_its_session_when_used_twice(client: FlaskClient) -> None:
    first = registered(client)["tokens"]
    second = _refresh(client, first["refreshToken"])
    assert (second.status_code, set(second.json)) == (200, {"accessToken", "refreshToken", "expiresIn"})
    assert _me(client, second.json).status_code == 200
    assert _status(_refresh(client, first["refreshToken"])) == (401, "invalid_token")
    assert _status(_me(client, second.json)) == (401, "session_ended")
    assert _status(_refresh(client, second.json["refreshToken"])) == (401, "invalid_token")


def test_of_two_refreshes_with_one_token_one_wins(client: FlaskClient) -> None:
    token = registered(client)["tokens"]["refreshToken"]
    clients = [client.application.test_client() for _ in range(4)]
    with ThreadPoolExecutor(4) as four:
        answers = list(four.map(lambda one: _refresh(one, token), clients))
    assert sorted(answer.status_code for answer in answers) == [200, 401, 401, 401]


def test_a_refresh_token_lasts_seven_days(client: FlaskClient) -> None:
    tokens = registered(client)["tokens"]
    with transaction() as session:
        session.execute(update(RefreshToken).values(expires_at=text("expires_at - interval '6 days 23 hours'")))
    again = _refresh(client, tokens["refreshToken"]).json
    with transaction() as session:
        session.execute(update(RefreshToken).values(expires_at=text("expires_at - interval '7 days'")))
        session.execute(update(PlayerSession).values(last_used_at=text("last_used_at - interval '7 days'")))
    assert client.get("/api/auth/sessions", headers=as_bearer(again)).json == {"sessions": [], "count": 0}
    assert _status(_refresh(client, again["refreshToken"])) == (401, "invalid_token")


def test_logging_out_ends_the_access_token_too(client: FlaskClient) -> None:
    tokens = registered(client)["tokens"]
    body = {"refreshToken": tokens["refreshToken"]}
    assert client.post("/api/auth/logout", json=body).json == {"success": True}
    assert _status(_me(client, tokens)) == (401, "session_ended")
    assert _status(_refresh(client, tokens["refreshToken"])) == (401, "invalid_token")
    assert client.post("/api/auth/logout", json=body).json == {"success": True}
    assert client.post("/api/auth/logout", json={"refreshToken": "never seen"}).json == {"success": True}


def test_a_suspended_player_is_told_so_and_one_who_excluded_herself_gets_in(client: FlaskClient) -> None:
    tokens = registered(client)["tokens"]
    with transaction() as session:
        session.execute(update(Player).values(self_excluded_until=text("now() + interval '9 days'")))
    assert client.post("/api/auth/login", json=ANA).status_code == 200
    with transaction() as session:
        session.execute(update(Player).values(suspended_at=text("now()")))
    assert _status(client.post("/api/auth/login", json=ANA)) == (403, "suspended")
    assert _status(client.post("/api/auth/login", json={**ANA, "password": "a guess"})) == (401, "invalid_credentials")
    assert _status(_refresh(client, tokens["refreshToken"])) == (403, "suspended")
    assert _status(_me(client, tokens)) == (403, "suspended")
    with transaction() as session:
        session.execute(update(Player).values(suspended_at=None))
    assert _refresh(client, tokens["refreshToken"]).status_code == 200


def test_a_hash_made_at_another_cost_is_made_anew_at_the_next_login(client: FlaskClient) -> None:
    registered(client)
    with transaction() as session:
        cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)
        session.execute(update(Player).values(password_hash=cheap))
    assert client.post("/api/auth/login", json=ANA).status_code == 200
    with transaction() as session:
        assert "$m=19456,t=2,p=1$" in session.scalar(text("SELECT password_hash FROM players"))
    assert client.post("/api/auth/login", json=ANA).status_code == 200


def test_two_keyboards_write_one_password(client: FlaskClient) -> None:
    registered(client, password="gefl\u00fcgelte worte")
    login = client.post("/api/auth/login", json={**ANA, "password": "geflu\u0308gelte worte"})
    assert login.status_code == 200
