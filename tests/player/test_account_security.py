"""What an attacker tries: forged tokens, guesses, costly passwords, and reading our logs."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import jwt
import pytest
from flask.testing import FlaskClient

from player.api.tokens import session_of_access_token
from player.models import passwords
from player.models.accounts import proven_owner, set_password, still_owner
from player.models.players import lock_player
from player.models.session import transaction
from player.settings import settings
from protocol.errors import Unauthenticated
from tests.player.factories import PASSWORD, a_player, registered

ANA = {"email": "ana@example.com", "password": PASSWORD}


def _forged(claims: dict[str, Any], **changes: Any) -> str:
    how: dict[str, Any] = {"key": settings().jwt_keys[0][1], "algorithm": "HS256", "headers": {"kid": "k1"}}
    return jwt.encode(claims, **{**how, **changes})


@pytest.mark.filterwarnings("ignore:The HMAC key is")  # for the other algorithm
def test_a_token_is_accepted_for_exactly_what_we_sign(client: FlaskClient) -> None:
    who, other = a_player(), a_player()
    mine = who.headers["Authorization"].removeprefix("Bearer ")
    claims = jwt.decode(mine, options={"verify_signature": False})
    now = datetime.now(UTC)
    header, body, _ = mine.split(".")
    forged = {
        "no signature": _forged(claims, key=None, algorithm="none"),
        "a signature cut off": f"{header}.{body}.",
        "another algorithm": _forged(claims, algorithm="HS512"),
        "another node's key": _forged(claims, key="x" * 48),
        "an unknown key": _forged(claims, headers={"kid": "k2"}),
        "no key": _forged(claims, headers={}),
        "another audience": _forged({**claims, "aud": "coordinator"}),
        "another issuer": _forged({**claims, "iss": "somebody"}),
        "expired": _forged({**claims, "exp": now - timedelta(seconds=1)}),
        "another player": _forged({**claims, "sub": str(other.id)}),
        "no session": _forged({name: value for name, value in claims.items() if name != "sid"}),
        "no end": _forged({name: value for name, value in claims.items() if name != "exp"}),
        "a session that never was": _forged({**claims, "sid": str(UUID(int=1))}),
        "a session that is no session": _forged({**claims, "sid": "x"}),
        "a number too large": _forged({**claims, "sub": "9" * 30}),
        "nonsense": "x",
        "bytes": "é",
    }
    assert client.get("/api/auth/me", headers={"Authorization": f"Bearer {_forged(claims)}"}).status_code == 200
    for what, token in forged.items():
        answer = client.get("/api/auth/me", headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 401, what
        assert answer.headers["WWW-Authenticate"].startswith("Bearer"), what
        assert set(answer.json) == {"error", "code"}, what
    for header in ("", "Bearer", "Bearer ", f"Basic {mine}", mine):
        assert client.get("/api/auth/me", headers={"Authorization": header}).status_code == 401, header


def test_a_clock_that_is_behind_the_databases_does_not_refuse_new_tokens(node: str) -> None:
    ahead = datetime.now(UTC) + timedelta(minutes=2)
    claims = {"iss": "lottery-operator", "aud": "player-api", "sub": "1", "sid": str(UUID(int=1))}
    token = _forged({**claims, "iat": ahead, "exp": ahead + timedelta(minutes=15)})
    assert session_of_access_token(token) == (1, UUID(int=1))


def test_an_unknown_address_costs_a_guess_as_much_as_a_known_one(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    registered(client)
    verified: list[str] = []
    verify = type(passwords._HASHER).verify

    def counted(hasher: Any, stored: Any, password: Any) -> Any:
        verified.append(str(stored)[:30])
        return verify(hasher, stored, password)

    monkeypatch.setattr(type(passwords._HASHER), "verify", counted)
    for address in ("ana@example.com", "nobody@example.com"):
        client.post("/api/auth/login", json={"email": address, "password": "a wrong guess"})
    # The same algorithm at the same cost, once each.
    assert len(verified) == 2
    assert verified[0] == verified[1]
    assert "m=19456,t=2,p=1" in verified[0]


def test_a_password_that_was_changed_while_it_was_compared_lets_nobody_in(client: FlaskClient) -> None:
    registered(client)
    player_id, proven = proven_owner(**ANA)
    with transaction() as session:
        assert still_owner(session, player_id, proven).id == player_id
        set_password(session, lock_player(session, player_id), "another hash")
    with pytest.raises(Unauthenticated), transaction() as session:
        still_owner(session, player_id, proven)


def test_who_asks_for_a_new_password_waits_as_long_whoever_it_is(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    registered(client)
    waits: list[float] = []
    monkeypatch.setattr("player.api.auth.time.sleep", waits.append)
    monkeypatch.setattr("player.api.auth.ANSWER_AFTER_SECONDS", 3600.0)
    for address in ("ana@example.com", "nobody@example.com"):
        assert client.post("/api/auth/password/forgot", json={"email": address}).status_code == 202
    # What it took until then is made up for.
    assert [3500 < wait < 3600 for wait in waits] == [True, True]


def test_a_long_password_costs_nothing(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "_HASHER", None)
    for path, more in (("register", {"displayName": "Ana"}), ("login", {})):
        long = client.post(f"/api/auth/{path}", json={**ANA, **more, "password": "x" * 200_000})
        assert long.status_code == 422, path
        assert "x" * 20 not in long.text
        huge = client.post(f"/api/auth/{path}", json={**ANA, **more, "password": "x" * 300_000})
        assert huge.status_code == 413, path
    assert not passwords.password_matches("anything", "x" * 129)


def test_no_more_passwords_are_hashed_at_a_time_than_there_are_turns(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passwords, "WAIT_SECONDS", 0.01)
    for _ in range(passwords.MOST_AT_ONCE):
        assert passwords._TURNS.acquire(blocking=False)
    try:
        refused = client.post("/api/auth/login", json=ANA)
    finally:
        for _ in range(passwords.MOST_AT_ONCE):
            passwords._TURNS.release()
    assert (refused.status_code, refused.json["code"]) == (503, "unavailable")
    assert client.post("/api/auth/login", json=ANA).status_code == 401


def test_passwords_and_tokens_are_in_no_answer_log_or_name(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    body = registered(client)
    refresh = body["tokens"]["refreshToken"]
    answers = [
        client.post("/api/auth/login", json=ANA),
        client.post("/api/auth/login", json={**ANA, "email": "bob@example.com"}),
        client.post("/api/auth/register", json={**ANA, "displayName": "Ana"}),
        client.post("/api/auth/register", json={**ANA, "displayName": ""}),
        client.post("/api/auth/register", json={**ANA, "displayName": "Ana", "unknown": PASSWORD}),
    ]

    def fails(*args: Any) -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr("player.api.auth.still_owner", fails)
    monkeypatch.setattr("player.api.auth.continue_session", fails)
    answers.append(client.post("/api/auth/login", json=ANA))
    answers.append(client.post("/api/auth/refresh", json={"refreshToken": refresh}))
    assert [answer.status_code for answer in answers[-2:]] == [500, 500]
    assert "a fault of ours" in caplog.text
    told = caplog.text + "".join(answer.text for answer in answers) + repr(settings())
    assert PASSWORD not in told
    assert "$argon2" not in told
    assert refresh not in told
    assert settings().jwt_keys[0][1] not in told
