"""A whole coordinator: entered only when ready, left with nothing running. The processes are stand-ins."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import requests

from deploy.coordinator import coordinator
from deploy.data_folder import hold
from deploy.failure import StartFailure
from deploy.procfile import TOP
from deploy.sandbox import sandbox
from tests.polling import family, gone, until

# Answers as the door would, and says on demand what it was given.
WEB = """
import http.server, json, os
class Door(http.server.BaseHTTPRequestHandler):
    def reply(self, status, body):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())
    def do_GET(self):
        if self.path == "/api/admin/applications":
            self.reply(200 if self.headers["X-Service-Admin-Key"] == os.environ["ADMIN_KEY"] else 401, {})
        else:
            self.reply(200, dict(os.environ))
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.reply(201, {"applicationId": "a1", "operatorId": "o1", "apiKey": "sk_1"})
    def log_message(self, *arguments):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Door).serve_forever()
"""
ENVIRON = {"LANG": "C.UTF-8", "ADMIN_KEY": "key-1"}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands in for the project, with a Procfile to be overwritten."""
    for module in "coordinator", "sandbox":
        monkeypatch.setattr(f"deploy.{module}.TOP", tmp_path)
    (tmp_path / "web.py").write_text(WEB)
    (tmp_path / "Procfile").write_text("release: sh -c 'echo migrated'\nweb: python web.py\nworker: sleep 1000\n")
    return tmp_path


def started_here() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


def test_it_is_entered_ready_and_left_with_nothing_running(project: Path) -> None:
    before = started_here()
    with (
        hold(project / "data") as folder,
        coordinator(folder, log_dir=project / "logs", environ=ENVIRON) as running,
    ):
        seen = requests.get(f"{running.base_url}/health/ready", timeout=5).json()
        assert seen["DATABASE_URL"] == running.env["DATABASE_URL"] == running.engines.database_url
        assert seen["SANDBOX"] == "1"
        assert seen["JWT_KEYS"].startswith("k1:")
        assert (folder.path / "release.log").read_text() == "migrated\n"
        everybody = started_here() - before
        assert {running.supervisor.pid("web"), running.supervisor.pid("worker")} < everybody
    assert gone(everybody)


@pytest.mark.parametrize(
    ("procfile", "said"),
    [
        ("release: sh -c 'echo no such table; exit 1'", "release step failed(?s:.*)no such table"),
        ("release: true\nweb: sh -c 'echo no module; exit 1'", "web died 5 times(?s:.*)no module"),
    ],
)
def test_a_failed_start_says_why_and_leaves_nothing(
    project: Path, monkeypatch: pytest.MonkeyPatch, procfile: str, said: str
) -> None:
    monkeypatch.setattr("deploy.supervisor._FIRST_PAUSE", 0.01)
    (project / "Procfile").write_text(procfile)
    before = started_here()
    with (
        pytest.raises(StartFailure, match=said),
        hold(project / "data") as folder,
        coordinator(folder, environ=ENVIRON),
    ):
        pass
    assert started_here() <= before


def test_the_sandbox_is_furnished_once_and_again_for_another_database(project: Path) -> None:
    made = project / "made"
    flask = project / "bin" / "flask"
    flask.parent.mkdir()
    flask.write_text(f'#!/bin/sh\necho made >> {made}\necho \'{{"adminKey": "key-1"}}\'\n')
    flask.chmod(0o755)
    file = project / "sandbox.json"
    with (
        hold(project / "data") as folder,
        coordinator(folder, log_dir=project / "logs", environ=ENVIRON) as real,
    ):
        running = replace(real, env={**real.env, "PATH": f"{flask.parent}:/bin"})
        first = sandbox(running, file)
        assert first["operators"] == [{"operatorId": "o1", "apiKey": "sk_1"}] * 3
        assert json.loads(file.read_text()) == first == sandbox(running, file)
        assert file.stat().st_mode & 0o777 == 0o600
        assert made.read_text() == "made\n"
        file.write_text(json.dumps(first | {"adminKey": "of another database"}))
        assert sandbox(running, file) == first
        assert made.read_text() == "made\nmade\n"


@pytest.fixture
def command(project: Path) -> Iterator[subprocess.Popen[str]]:
    """`make run` in the stand-in project, ready."""
    patch = "import sys, pathlib, deploy.coordinator as c, deploy.run as r; c.TOP = pathlib.Path(sys.argv[1])"
    process = subprocess.Popen(
        [sys.executable, "-c", f"{patch}; sys.exit(r.main())", str(project)],
        cwd=TOP, env={**ENVIRON, "SANDBOX": "0", "PORT": "0", "DATA_DIR": str(project / "data")},
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("ready: "):
            break
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_stopping_the_command_stops_all_of_it_and_says_so(
    command: subprocess.Popen[str], signal_number: signal.Signals
) -> None:
    everybody = family(command.pid)
    assert len(everybody) > 4
    command.send_signal(signal_number)
    assert command.wait(25) == 0
    assert gone(everybody)
    assert command.stdout is not None
    assert command.stdout.read().endswith("stopped\n")


def test_a_killed_command_leaves_nothing_and_starts_again(command: subprocess.Popen[str], project: Path) -> None:
    everybody = family(command.pid)
    command.kill()
    until(lambda: gone(everybody), within=25, what="all ends with the killed command")
    with hold(project / "data") as folder, coordinator(folder, log_dir=project / "logs", environ=ENVIRON):
        pass
