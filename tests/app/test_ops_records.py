"""``flask ops ledger`` and ``audit``; and how every command ends when something is wrong underneath."""

from __future__ import annotations

from collections.abc import Callable

import click
import pytest
from flask import Flask
from sqlalchemy import text

from app.ops import ops
from models import session as sessions
from models.session import transaction
from models.settings import settings
from protocol.lifecycle import State
from tests.app.conftest import Caller
from tests.app.ops import Shell
from tests.factories import a_played_round, some_operators


def test_the_books_are_shown_as_the_api_shows_them(shell: Shell, admin: Callable[..., Caller]) -> None:
    operators = some_operators(2)
    a_played_round(operators, State.SETTLED)
    assert shell.json("ledger", "list") == admin().get("/api/admin/ledger").get_json()
    assert shell.json("ledger", "accounts") == admin().get("/api/admin/ledger/accounts").get_json()
    settlement = shell.run("ledger", "list", "--kind", "settlement", "--round", "1", "--account", "pool").stdout
    assert "settlement:1" in settlement
    [escrow] = [line.split() for line in settlement.splitlines() if "escrow:1" in line]
    assert escrow[-2:] == ["escrow:1", "-180.000000"]
    first = shell.run("ledger", "list", "--limit", "1").stdout
    assert shell.run("ledger", "list", "--limit", "1", "--cursor", first.split("--cursor ")[1].strip()).stdout != first
    assert ["escrow:1", "0.000000"] in [line.split() for line in shell.run("ledger", "accounts").stdout.splitlines()]
    assert "No posting fits." in shell.run("ledger", "list", "--account", "operator:op_x").stdout


def test_the_audit_log_is_shown_as_the_api_shows_it(shell: Shell, admin: Callable[..., Caller]) -> None:
    for act in ("pause", "resume"):
        shell.run("queues", act, "rounds", "--reason", f"to {act}", "--as", "nina")
    assert shell.json("audit", "list") == admin().get("/api/admin/audit").get_json()
    assert "to pause" in shell.run("audit", "list", "--actor", "nina", "--action", "queue.pause").stdout
    assert "No entry fits." in shell.run("audit", "list", "--subject", "lunch").stdout


def test_a_database_that_is_not_migrated_ends_with_3(shell: Shell) -> None:
    with transaction() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '0001'"))
        session.execute(text("ALTER TABLE queue_pauses RENAME TO elsewhere"))
    assert "alembic upgrade head" in shell.refused("queues", "list", ends=3)


def test_a_database_that_is_away_ends_with_3(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://somebody:secret@127.0.0.1:1/none")
    settings.cache_clear()
    sessions.engine.cache_clear()
    for words in (("deliveries", "list"), ("rounds", "show", "1"), ("audit", "list")):
        told = shell.refused(*words, ends=3)
        assert "cannot be reached" in told
        assert "secret" not in told
        assert "Traceback" not in told


def test_every_command_and_option_says_what_it_is_for(application: Flask) -> None:
    groups = [one for one in ops.commands.values() if isinstance(one, click.Group)]
    commands = [one for one in ops.commands.values() if one not in groups]
    commands += [command for group in groups for command in group.commands.values()]
    assert len(commands) >= 25
    for command in (*groups, *commands):
        assert command.help, command.name
    for command in commands:
        for param in command.params:
            assert param.param_type_name == "argument" or param.help, f"{command.name} {param.name}"
        writes = command.name not in ("list", "show", "accounts", "jobs", "watch", "check", "export")
        assert writes == any(param.name == "actor" and "--as" in param.opts for param in command.params), command.name
