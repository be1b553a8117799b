"""Wrong settings of a node: one line that says what would be right, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from player.payments.port import exit_unless_made
from player.settings import SettingsError, read_settings
from tests.player.conftest import ENVIRONMENT

STAFF_KEYS = ["flask", "--app", "player.api.factory", "staff-key", "list"]


@pytest.fixture
def good(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (ENVIRONMENT | {"DATABASE_URL": "postgres://db", "REDIS_URL": "redis://cache"}).items():
        monkeypatch.setenv(name, value)
    read_settings()


@pytest.mark.parametrize("command", [STAFF_KEYS, ["player.clock"]])
def test_a_command_without_settings_names_all_that_are_missing(command: list[str]) -> None:
    environ = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    done = subprocess.run(
        [sys.executable, "-m", *command], env=environ, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "not set: DATABASE_URL, REDIS_URL, COORDINATOR_URL" in done.stderr


@pytest.mark.parametrize(
    ("name", "value", "right"),
    [
        ("REDIS_URL", "http://:s3cret@cache", "rediss://"),
        ("LOG_LEVEL", "s3cret", "DEBUG, INFO"),
        ("PUBLIC_URL", "s3cret", "https://"),
        ("TRUSTED_HOPS", "s3cret", "integer"),
        ("PAYMENT_PORT", "s3cret", "package.module:Class"),
    ],
)
def test_a_wrong_setting_is_named_with_what_would_be_right(
    name: str, value: str, right: str, good: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as refused:
        read_settings()
    assert refused.value.message.startswith(name)
    assert right in refused.value.message
    assert "s3cret" not in refused.value.message


def test_a_payment_provider_that_is_not_there_stops_the_start(good: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAYMENT_PORT", "nowhere:Nobody")
    monkeypatch.setattr("player.payments.port.settings", read_settings)
    with pytest.raises(SystemExit, match="worker: PAYMENT_PORT must be package"):
        exit_unless_made("worker")
