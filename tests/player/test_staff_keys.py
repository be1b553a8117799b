"""Staff keys: made at a shell, shown once, worth nothing once revoked; and each of it is in the audit log."""

from __future__ import annotations

import json

import pytest
from click.testing import Result
from flask import Flask
from sqlalchemy import create_engine, select

from player.models.session import transaction
from player.models.staff import AuditEntry


@pytest.fixture
def application(node: str) -> Flask:
    from player.api.factory import create_app

    return create_app()


def run(application: Flask, *words: str) -> Result:
    return application.test_cli_runner().invoke(args=["staff-key", *words])


def opens(application: Flask, key: str) -> bool:
    answer = application.test_client().get("/api/admin/audit", headers={"X-Admin-Key": key})
    assert answer.status_code in (200, 401)
    return answer.status_code == 200


def test_a_key_opens_the_admin_api_until_it_is_revoked(application: Flask) -> None:
    made = json.loads(run(application, "create", "--name", "Ana", "--json").output)
    assert opens(application, made["staffKey"])
    assert not opens(application, made["staffKey"] + "x")
    assert not opens(application, "")
    listed = json.loads(run(application, "list", "--json").output)
    assert [(key["keyId"], key["name"], key["revokedAt"]) for key in listed] == [(made["keyId"], "Ana", None)]
    assert run(application, "revoke", made["keyId"], "--reason", "left").exit_code == 0
    assert not opens(application, made["staffKey"])
    assert "revoked 20" in run(application, "list").output
    with transaction() as session:
        noted = [(entry.action, entry.subject) for entry in session.scalars(select(AuditEntry).order_by(AuditEntry.id))]
    key = f"staff_key:{made['keyId']}"
    assert noted == [("staff_key.create", key), ("staff_key.revoke", key)]


def test_the_secret_is_printed_once_and_never_stored(application: Flask) -> None:
    shown = run(application, "create", "--name", "Ana").output
    (secret,) = [line.strip() for line in shown.splitlines() if line.strip().startswith("ok_")]
    assert opens(application, secret)
    assert secret not in run(application, "list").output
    with transaction() as session:
        rows = session.connection().exec_driver_sql("SELECT staff_keys::text FROM staff_keys").scalars().all()
    assert secret not in "".join(rows)


@pytest.mark.parametrize("words", [["create", "--name", "Ana"], ["revoke", "nobody", "--reason", "left"]])
def test_what_is_refused_is_said_in_one_line(application: Flask, words: list[str]) -> None:
    run(application, "create", "--name", "Ana")
    refused = run(application, *words)
    assert refused.exit_code == 1
    assert refused.output.startswith("Error: ")
    assert refused.output.count("\n") == 1


def test_a_database_that_is_away_or_empty_is_said_in_one_line(
    application: Flask, monkeypatch: pytest.MonkeyPatch
) -> None:
    with transaction() as session:
        session.connection().exec_driver_sql("DROP TABLE staff_keys; DELETE FROM alembic_version")
    empty = run(application, "list")
    assert (empty.exit_code, empty.output.count("\n")) == (1, 1)
    assert "run the release step" in empty.output
    away = create_engine("postgresql+psycopg2://us@127.0.0.1:1/nowhere")
    for place in ("player.models.session.engine", "player.api.commands.engine"):
        monkeypatch.setattr(place, lambda: away)
    told = run(application, "list")
    assert (told.exit_code, told.output) == (1, "Error: the database cannot be reached\n")
