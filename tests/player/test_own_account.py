"""A player's password and sessions, changed by her and by nobody else."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import select, text, update

from player.models.mails import Mail
from player.models.session import transaction
from player.models.sessions import PasswordReset
from tests.player.factories import PASSWORD, as_bearer, registered

NEW = "another good password"
ANA = {"email": "ana@example.com", "password": PASSWORD}


@pytest.fixture(autouse=True)
def _answer_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("player.api.auth.ANSWER_AFTER_SECONDS", 0.0)


def _login(client: FlaskClient, password: str = PASSWORD) -> Any:
    return client.post("/api/auth/login", json={**ANA, "password": password})


def _alive(client: FlaskClient, tokens: dict[str, Any]) -> bool:
    return bool(client.get("/api/auth/me", headers=as_bearer(tokens)).status_code == 200)


def _mails() -> list[Mail]:
    with transaction() as session:
        return list(session.scalars(select(Mail).order_by(Mail.id)))


def _reset_token(client: FlaskClient) -> str:
    assert client.post("/api/auth/password/forgot", json={"email": "ANA@example.com"}).status_code == 202
    found = re.search(r"^ {4}(\S+)$", _mails()[-1].body or "", re.MULTILINE)
    assert found is not None
    return found[1]


def _reset(client: FlaskClient, token: str, password: str = NEW) -> Any:
    return client.post("/api/auth/password/reset", json={"token": token, "newPassword": password})


def test_changing_the_password_needs_the_old_one_and_ends_the_other_sessions(client: FlaskClient) -> None:
    here, there = registered(client)["tokens"], _login(client).json["tokens"]
    body = {"currentPassword": "not my password", "newPassword": NEW}
    refused = client.put("/api/auth/password", json=body, headers=as_bearer(here))
    assert (refused.status_code, refused.json["code"]) == (403, "wrong_password")
    weak = {"currentPassword": PASSWORD, "newPassword": "Ana@example.com"}
    assert client.put("/api/auth/password", json=weak, headers=as_bearer(here)).status_code == 422
    body["currentPassword"] = PASSWORD
    assert client.put("/api/auth/password", json=body, headers=as_bearer(here)).json == {"success": True}
    assert (_alive(client, here), _alive(client, there)) == (True, False)
    assert (_login(client).status_code, _login(client, NEW).status_code) == (401, 200)
    assert [mail.subject for mail in _mails()] == ["Your password was changed"]


def test_of_two_changes_of_the_password_one_wins(client: FlaskClient) -> None:
    tokens = registered(client)["tokens"]

    def change(new: str) -> int:
        body = {"currentPassword": PASSWORD, "newPassword": new}
        one = client.application.test_client()
        return one.put("/api/auth/password", json=body, headers=as_bearer(tokens)).status_code

    with ThreadPoolExecutor(2) as two:
        statuses = list(two.map(change, [NEW, NEW + "!"]))
    assert statuses.count(200) == 1, statuses
    assert _login(client, [NEW, NEW + "!"][statuses.index(200)]).status_code == 200


def test_a_forgotten_password_is_set_with_a_token_that_is_good_once(client: FlaskClient) -> None:
    tokens = registered(client)["tokens"]
    token = _reset_token(client)
    assert _reset(client, token, "too short").status_code == 422
    assert _reset(client, token, "Ana@example.com").json["code"] == "weak_password"
    assert _reset(client, token).json == {"success": True}
    assert not _alive(client, tokens)
    assert (_login(client).status_code, _login(client, NEW).status_code) == (401, 200)
    again = _reset(client, token)
    assert (again.status_code, again.json["code"]) == (422, "invalid_reset_token")
    assert _reset(client, "never seen").json == again.json


def test_of_two_uses_of_a_reset_token_one_wins(client: FlaskClient) -> None:
    registered(client)
    token = _reset_token(client)
    clients = [client.application.test_client() for _ in range(2)]
    with ThreadPoolExecutor(2) as two:
        answers = list(two.map(lambda one: _reset(one, token), clients))
    assert sorted(answer.status_code for answer in answers) == [200, 422]


def test_a_reset_token_is_good_for_an_hour_and_dies_with_the_next_change(client: FlaskClient) -> None:
    registered(client)
    first, second = _reset_token(client), _reset_token(client)
    assert _reset(client, first).status_code == 200
    assert _reset(client, second).json["code"] == "invalid_reset_token"
    late = _reset_token(client)
    with transaction() as session:
        session.execute(update(PasswordReset).values(expires_at=text("expires_at - interval '1 hour'")))
    assert _reset(client, late).json["code"] == "invalid_reset_token"


def test_who_asks_for_a_new_password_learns_nothing(client: FlaskClient) -> None:
    registered(client)
    known = [client.post("/api/auth/password/forgot", json={"email": "ana@example.com"}) for _ in range(5)]
    unknown = client.post("/api/auth/password/forgot", json={"email": "bob@example.com"})
    assert {(answer.status_code, answer.data) for answer in known} == {(202, unknown.data)}
    # And nobody's mailbox is filled.
    assert len(_mails()) == 3


def test_a_player_sees_her_sessions_and_ends_them(client: FlaskClient) -> None:
    first = registered(client)["tokens"]
    second = client.post("/api/auth/login", json=ANA, headers={"User-Agent": "a phone"}).json["tokens"]
    third = _login(client).json["tokens"]
    stranger = registered(client, "bob@example.com")["tokens"]
    listed = client.get("/api/auth/sessions", headers=as_bearer(first)).json
    assert listed["count"] == 3
    assert [one["current"] for one in listed["sessions"]] == [False, False, True]
    phone = listed["sessions"][1]
    assert (phone["userAgent"], phone["address"]) == ("a phone", "127.0.0.1")
    assert set(phone) == {"id", "createdAt", "lastUsedAt", "address", "userAgent", "current"}
    path = f"/api/auth/sessions/{phone['id']}"
    assert client.delete(path, headers=as_bearer(stranger)).status_code == 404
    assert client.delete(path, headers=as_bearer(first)).json == {"success": True}
    assert client.delete(path, headers=as_bearer(first)).status_code == 404
    assert not _alive(client, second)
    assert client.delete("/api/auth/sessions", headers=as_bearer(first)).json == {"success": True, "ended": 1}
    assert [_alive(client, tokens) for tokens in (first, third, stranger)] == [True, False, True]
