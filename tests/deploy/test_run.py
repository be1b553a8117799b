"""`make run` before it runs: what stops it is said in one message, and nothing is left behind."""

from __future__ import annotations

import json
import os
import runpy
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.data_folder import DataFolder, hold
from deploy.failure import StartFailure
from deploy.keys import keys
from deploy.procfile import TOP


def run(data: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "deploy.run"],
        cwd=TOP, env=os.environ | {"DATA_DIR": str(data)} | environ,
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done


def test_a_second_start_on_the_same_folder_says_who_has_it(tmp_path: Path) -> None:
    with hold(tmp_path / "data"):
        done = run(tmp_path / "data")
    assert done.returncode == 1
    assert done.stderr == f"run: already running on {tmp_path}/data (pid {os.getpid()})\n"


def test_a_taken_port_is_said_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run(tmp_path / "data", PORT=str(port))
    assert done.returncode == 1
    assert f"port {port} on 127.0.0.1 is taken" in done.stderr
    assert not (tmp_path / "data" / "postgres.log").exists()


@pytest.mark.parametrize("port", ["eighty", "65536", "-1"])
def test_a_port_that_is_none_is_refused(tmp_path: Path, port: str) -> None:
    done = run(tmp_path / "data", PORT=port)
    assert done.returncode == 1
    assert "PORT must be a number from 1 to 65535" in done.stderr


def test_an_unreachable_database_is_one_line_without_its_password(tmp_path: Path) -> None:
    done = run(tmp_path / "data", DATABASE_URL="postgresql://app:hunter2@127.0.0.1:1/lottery", PORT="0")
    assert done.returncode == 1
    assert done.stderr.startswith("run: DATABASE_URL: cannot use postgresql://app:***@127.0.0.1:1/lottery")
    assert "hunter2" not in done.stdout + done.stderr


def test_keys_are_made_once_kept_private_and_given_way_to(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    first = keys(folder, {})
    assert keys(folder, {}) == first
    assert keys(folder, {"JWT_KEYS": "k2:given"}) == first | {"JWT_KEYS": "k2:given"}
    assert (tmp_path / "secrets.json").stat().st_mode & 0o777 == 0o600
    assert json.loads((tmp_path / "secrets.json").read_text()) == first


def test_a_damaged_key_file_stops_the_start_and_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "secrets.json").write_text("{")
    with pytest.raises(StartFailure, match="is damaged"):
        keys(DataFolder(tmp_path), {})
    assert (tmp_path / "secrets.json").read_text() == "{"


@pytest.mark.parametrize(
    ("environ", "bind"),
    [
        ({"PORT": "9000"}, "0.0.0.0:9000"),
        ({"SANDBOX": "1"}, "127.0.0.1:8000"),
        ({"SANDBOX": "1", "HOST": "0.0.0.0"}, "0.0.0.0:8000"),  # noqa: S104
    ],
)
def test_a_sandbox_is_open_to_this_machine_only(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], bind: str
) -> None:
    for name in "SANDBOX", "HOST", "PORT":
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert runpy.run_path(str(TOP / "deploy" / "gunicorn.conf.py"))["bind"] == bind
