"""Secrets: recognised with the same work whether they are nearly right or made up, unreadable at rest, never logged.

One rule: whatever is claimed here is claimed of every secret that a real onboarding makes, and a control shows that
the search would have found one.
"""

from __future__ import annotations

import base64
import io
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import jwt
import pytest
from cryptography.fernet import Fernet
from flask import Flask
from sqlalchemy import event, text

from models import credentials, encryption, session, tables
from models.reencryption import ENCRYPTED
from models.settings import settings
from tasks import logs
from tests.app.conftest import Caller, assert_error
from tests.app.test_applications import FORM
from tests.factories import a_round, rows


@dataclass
class Work:
    """What answering took: the statements sent to the database, and what was hashed and compared."""

    statements: list[str] = field(default_factory=list)
    hashed: int = 0
    compared: list[tuple[int, int]] = field(default_factory=list)


@pytest.fixture
def work_of(application: object, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], Work]:
    """How to watch what a request takes."""
    now = Work()
    honest_digest, honest_compare = credentials.digest, credentials.hmac.compare_digest

    def digest(secret: str) -> bytes:
        now.hashed += 1
        return honest_digest(secret)

    def compare(one: Any, other: Any) -> bool:
        now.compared.append((len(one), len(other)))
        return honest_compare(one, other)

    monkeypatch.setattr(credentials, "digest", digest)
    monkeypatch.setattr(credentials.hmac, "compare_digest", compare)
    event.listen(session.engine(), "before_cursor_execute", lambda *it: now.statements.append(it[2]))

    def watch(ask: Callable[[], Any]) -> Work:
        now.statements, now.hashed, now.compared = [], 0, []
        assert_error(ask(), 401)
        return Work(list(now.statements), now.hashed, list(now.compared))

    return watch


def test_a_wrong_secret_takes_the_same_work_whether_its_id_exists_or_not(
    anybody: Caller,
    operator: Callable[[], Caller],
    admin: Callable[[], Caller],
    work_of: Callable[[Callable[[], Any]], Work],
) -> None:
    key, root = operator().headers["X-Service-Key"], admin().headers["X-Service-Admin-Key"]
    filed = anybody.post("/api/public/apply", FORM).get_json()["applicationId"]
    wrong = "0" * 64

    def by_header(path: str, header: str, secret: str) -> Callable[[], Any]:
        return lambda: anybody.get(path, headers={header: secret})

    def login(secret: str) -> Callable[[], Any]:
        return lambda: anybody.post("/api/auth/operator/login", {"apiKey": secret})

    def status(application_id: str) -> Callable[[], Any]:
        return by_header(f"/api/public/application-status/{application_id}", "X-Application-Token", wrong)

    nearly, made_up = f"{key[:20]}{wrong}", f"sk_{'0' * 16}_{wrong}"
    nearly_admin, made_up_admin = f"{root[:20]}{wrong}", f"ak_{'0' * 16}_{wrong}"
    me, listed = "/api/operator/me", "/api/admin/applications"
    for existing, unknown in (
        (by_header(me, "X-Service-Key", nearly), by_header(me, "X-Service-Key", made_up)),
        (login(nearly), login(made_up)),
        (
            by_header(listed, "X-Service-Admin-Key", nearly_admin),
            by_header(listed, "X-Service-Admin-Key", made_up_admin),
        ),
        (status(filed), status("app_0000000000000000")),
    ):
        work = work_of(existing)
        assert (len(work.statements), work.hashed, work.compared) == (1, 1, [(32, 32)])
        assert work_of(unknown) == work


def test_a_wrong_secret_does_not_tell_that_its_key_expired_or_was_revoked(
    anybody: Caller,
    operator: Callable[[], Caller],
    admin: Callable[[], Caller],
    work_of: Callable[[Callable[[], Any]], Work],
) -> None:
    key, root = operator().headers["X-Service-Key"], admin().headers["X-Service-Admin-Key"]
    asks = [
        lambda: anybody.get("/api/operator/me", headers={"X-Service-Key": key[:20] + "0" * 64}),
        lambda: anybody.get("/api/admin/applications", headers={"X-Service-Admin-Key": root[:20] + "0" * 64}),
    ]
    before = [work_of(ask) for ask in asks]
    with session.transaction() as held:
        held.execute(text("UPDATE operator_api_keys SET expires_at = now()"))
        held.execute(text("UPDATE admin_keys SET revoked_at = now()"))
    assert [work_of(ask) for ask in asks] == before


def test_what_is_no_key_at_all_is_compared_as_well(
    anybody: Caller, work_of: Callable[[Callable[[], Any]], Work]
) -> None:
    for shape in ("", "x", "sk_", "ak_1_2", "sk_é_1"):
        work = work_of(lambda shape=shape: anybody.get("/api/operator/me", headers={"X-Service-Key": shape}))
        assert (work.hashed, work.compared) == (1, [(32, 32)])


@dataclass
class Onboarded:
    """An operator that went all the way, and every secret that came of it."""

    anybody: Caller
    operator_id: str
    api_key: str
    access_token: str
    secrets: dict[str, str]


@pytest.fixture
def onboard(anybody: Caller, admin: Callable[[str], Caller]) -> Callable[[], Onboarded]:
    """Apply, be approved, log in, refresh, register a webhook, be invited to a round."""

    def go() -> Onboarded:
        filed = anybody.post("/api/public/apply", FORM).get_json()
        token = {"X-Application-Token": filed["applicationToken"]}
        anybody.get(f"/api/public/application-status/{filed['applicationId']}", headers=token)
        reviewer = admin("reviewer")
        path = f"/api/admin/applications/{filed['applicationId']}/approve"
        approved = reviewer.post(path, {"reviewNote": "welcome"}).get_json()
        key = approved["apiKey"]
        first = anybody.post("/api/auth/operator/login", {"apiKey": key}).get_json()
        second = anybody.post("/api/auth/refresh", {"refreshToken": first["refreshToken"]}).get_json()
        webhook = anybody.put("/api/operator/webhook", {"url": "http://127.0.0.1:9/"}, headers={"X-Service-Key": key})
        assert webhook.status_code == 200
        a_round([approved["operatorId"]])
        [(encrypted,)] = rows("SELECT secret_encrypted FROM rounds")
        secrets = {
            "application token": filed["applicationToken"],
            "API key": key,
            "API key, its secret part": key.split("_")[2],
            "admin key": reviewer.headers["X-Service-Admin-Key"],
            "admin key, its secret part": reviewer.headers["X-Service-Admin-Key"].split("_")[2],
            "first access token": first["accessToken"],
            "first refresh token": first["refreshToken"],
            "second access token": second["accessToken"],
            "second refresh token": second["refreshToken"],
            "the round's secret": encryption.decrypt(bytes(encrypted)).hex(),
            "JWT key": settings().jwt_keys[0][1],
            "encryption key": settings().encryption_keys[0],
        }
        return Onboarded(anybody, approved["operatorId"], key, second["accessToken"], secrets)

    return go


def found(secrets: dict[str, str], where: str) -> list[str]:
    """Which of the secrets stand in a text: as they are, or in one of the ways in which bytes are written."""

    def shapes(secret: str) -> Iterator[str]:
        raw = [secret.encode()]
        if len(secret) == 64 and set(secret) <= set("0123456789abcdef"):
            raw.append(bytes.fromhex(secret))
        yield secret
        for these in raw:
            yield these.hex()
            yield base64.b64encode(these).decode().rstrip("=")
            yield base64.urlsafe_b64encode(these).decode().rstrip("=")
            yield repr(these)[2:-1]

    return [name for name, secret in secrets.items() if any(shape in where for shape in shapes(secret))]


def everything_stored() -> str:
    """All that stands in all tables, bytes in hex."""
    tables = rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    return "\n".join(line for (name,) in tables for (line,) in rows(f'SELECT row::text FROM "{name}" row'))


def test_no_secret_of_an_onboarding_can_be_read_from_any_column_of_any_table(onboard: Callable[[], Onboarded]) -> None:
    made = onboard()
    stored = everything_stored()
    assert found(made.secrets, stored) == []
    control = {
        "an id": made.operator_id,
        "a text": FORM["companyName"],
        "bytes": credentials.digest(made.api_key).hex(),
    }
    assert found(control, stored) == list(control)


def test_no_secret_of_an_onboarding_reaches_the_logs_at_their_most_talkative(
    onboard: Callable[[], Onboarded], monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.StringIO()
    with monkeypatch.context() as here:
        here.setattr(sys, "stderr", written)
        logs.configure("DEBUG")
    try:
        made = onboard()
        key = made.api_key
        for wrong in (key[:-1], key + "0", made.access_token):
            made.anybody.get("/api/operator/me", headers={"X-Service-Key": wrong})
            made.anybody.get("/api/operator/me", headers={"Authorization": f"Bearer {wrong}x"})
            made.anybody.post("/api/auth/operator/login", {"apiKey": wrong, key: key})
        made.anybody.post("/api/auth/operator/login", data=f'{{"apiKey": "{key}"', content_type="application/json")
        with session.transaction() as held:
            held.execute(text("ALTER TABLE refresh_tokens RENAME TO elsewhere"))
        assert_error(made.anybody.post("/api/auth/operator/login", {"apiKey": key}), 500)
        assert_error(made.anybody.post("/api/auth/refresh", {"refreshToken": made.secrets["API key"]}), 500)
    finally:
        logs.configure("INFO")
    logged = written.getvalue()
    assert "UndefinedTable" in logged  # the two failures are there, with their tracebacks
    assert found(made.secrets, logged) == []


def test_a_database_error_nobody_expected_is_logged_without_the_values_of_its_statement(
    anybody: Caller, caplog: pytest.LogCaptureFixture
) -> None:
    with session.transaction() as held:
        held.execute(text("ALTER TABLE applications RENAME TO elsewhere"))
    assert_error(anybody.post("/api/public/apply", FORM), 500)
    assert "INSERT INTO applications" in caplog.text
    assert FORM["contactEmail"] not in caplog.text


def use(monkeypatch: pytest.MonkeyPatch, **environment: str) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    settings.cache_clear()
    encryption._fernet.cache_clear()


def test_what_was_encrypted_with_an_older_key_stays_in_use_and_what_is_new_needs_it_no_more(
    onboard: Callable[[], Onboarded], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, older, newer = onboard(), settings().encryption_keys[0], Fernet.generate_key().decode()
    use(monkeypatch, ENCRYPTION_KEYS=f"{newer},{older}")
    with session.transaction() as held:
        assert credentials.signing_key(held, made.operator_id) == made.api_key
        second = credentials.issue_api_key(held, made.operator_id)
    use(monkeypatch, ENCRYPTION_KEYS=newer)
    with session.transaction() as held:
        assert credentials.signing_key(held, made.operator_id) == second
    # Recognising a key takes no encryption key at all.
    for key in (made.api_key, second):
        assert made.anybody.get("/api/operator/me", headers={"X-Service-Key": key}).status_code == 200


def test_an_older_key_is_retired_once_everything_is_encrypted_anew(
    onboard: Callable[[], Onboarded], application: Flask, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, older, newer = onboard(), settings().encryption_keys[0], Fernet.generate_key().decode()
    use(monkeypatch, ENCRYPTION_KEYS=f"{newer},{older}")

    def reencrypt(*options: str) -> list[tuple[int, int]]:
        ran = application.test_cli_runner().invoke(args=["ops", "reencrypt", "--json", *options])
        assert ran.exit_code == 0, ran.output
        return [(each["count"], each["outdated"]) for each in json.loads(ran.output)["secrets"]]

    stored = everything_stored()
    assert reencrypt("--dry-run") == [(1, 1), (1, 1)]
    assert everything_stored() == stored
    assert reencrypt() == [(1, 1), (1, 1)]
    assert reencrypt() == [(1, 0), (1, 0)]
    assert rows("SELECT count(*) FROM audit_log WHERE action = 'secrets.reencrypt'") == [(1,)]
    use(monkeypatch, ENCRYPTION_KEYS=newer)
    with session.transaction() as held:
        assert credentials.signing_key(held, made.operator_id) == made.api_key
    [(encrypted,)] = rows("SELECT secret_encrypted FROM rounds")
    assert encryption.decrypt(bytes(encrypted)).hex() == made.secrets["the round's secret"]


def test_what_no_key_fits_is_said_in_one_line(
    onboard: Callable[[], Onboarded], application: Flask, monkeypatch: pytest.MonkeyPatch
) -> None:
    onboard()
    use(monkeypatch, ENCRYPTION_KEYS=Fernet.generate_key().decode())
    ran = application.test_cli_runner().invoke(args=["ops", "reencrypt"])
    assert ran.exit_code == 1
    assert ran.output == "Error: a stored secret fits none of ENCRYPTION_KEYS; is an older key missing from it?\n"


def test_every_encrypted_column_is_encrypted_anew() -> None:
    named = {
        f"{table.name}.{column.name}"
        for table in tables.metadata.tables.values()
        for column in table.columns
        if "encrypted" in column.name
    }
    assert {f"{column.class_.__tablename__}.{column.key}" for _, _, column in ENCRYPTED} == named


def test_tokens_outlive_a_new_signing_key_and_not_the_removal_of_their_own(
    onboard: Callable[[], Onboarded], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, older = onboard(), ":".join(settings().jwt_keys[0])
    newer = "next:" + "another secret for tests only " * 2

    def status_of(token: str) -> int:
        return made.anybody.get("/api/operator/me", headers={"Authorization": f"Bearer {token}"}).status_code

    use(monkeypatch, JWT_KEYS=f"{newer},{older}")
    second = made.anybody.post("/api/auth/operator/login", {"apiKey": made.api_key}).get_json()["accessToken"]
    assert jwt.get_unverified_header(second)["kid"] == "next"
    assert (status_of(made.access_token), status_of(second)) == (200, 200)
    use(monkeypatch, JWT_KEYS=newer)
    assert (status_of(made.access_token), status_of(second)) == (401, 200)
