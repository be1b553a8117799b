"""One whole program on this machine: its engines, its migrations, the processes of its Procfile, ready to answer.

One rule: all or nothing. The block is entered when /health/ready says yes, and when it is left, in whatever way,
nothing of it runs any more.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import requests

from deploy import children
from deploy.data_folder import DataFolder
from deploy.engines import Engines, engines
from deploy.failure import StartFailure
from deploy.procfile import RELEASE, argv, read_procfile, search_path
from deploy.supervisor import Supervisor

_READY_SECONDS = 60.0

here = requests.Session()
"""For calls to this machine: past any proxy that the environment names, which could not reach it."""
here.trust_env = False

# The processes drain in 20 s; with the engines after them everything is down in 25 s.
_DRAIN_SECONDS = 22.0


@dataclass(frozen=True)
class Running:
    """A running one. `env` is what its processes have: enough to run a command line beside them."""

    base_url: str
    env: Mapping[str, str]
    supervisor: Supervisor
    engines: Engines


@contextlib.contextmanager
def running(
    folder: DataFolder,
    procfile: Path,
    settings: Mapping[str, str],
    *,
    host: str,
    port: int,
    cwd: Path,
    durable: bool = False,
    log_dir: Path | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Iterator[Running]:
    """Start what `procfile` names on `port` (free already) with the data in `folder`; Failure says why it cannot.

    The processes' output goes to `log_dir`/NAME.log, or line by line to our standard output. They have `environ`, over
    it the engines' addresses, over that `settings`.
    """
    commands = procfile.read_text()
    with engines(folder, durable=durable, environ=environ) as servers:
        env = {
            **environ,
            **servers.environment,
            **settings,
            "HOST": host,
            "PORT": str(port),
            "DATA_DIR": str(folder.path.absolute()),
            "PATH": search_path(),
            "PYTHONUNBUFFERED": "1",
        }
        _release(read_procfile(commands)[RELEASE], env, folder.path / "release.log", cwd)
        supervisor = Supervisor(commands, env, log_dir, cwd=cwd)
        try:
            supervisor.start()
            base_url = address(host, port)
            _wait_until_ready(base_url, supervisor)
            yield Running(base_url, env, supervisor, servers)
        finally:
            supervisor.stop(_DRAIN_SECONDS)


def address(host: str, port: int) -> str:
    """Where this machine finds who listens there."""
    return f"http://{'127.0.0.1' if host == '0.0.0.0' else host}:{port}"  # noqa: S104


def claim_port(host: str, port: int) -> int:
    """`port` if it is free, or a free one for 0. StartFailure when somebody listens there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise StartFailure(f"port {port} on {host} is taken: name another with PORT=… ({error.strerror})") from None
        return int(probe.getsockname()[1])


def port_of(text: str) -> int:
    """The port that somebody wrote, 0 for any that is free."""
    if text.isascii() and text.isdigit() and int(text) < 65536:
        return int(text)
    raise StartFailure(f"PORT must be a number from 1 to 65535, not {text!r}")


def _release(command: str, env: Mapping[str, str], log_file: Path, cwd: Path) -> None:
    """Run the Procfile's release step (the migrations) to its end."""
    with children.open_log(log_file) as log:
        process = children.spawn(argv(command), env=env, output=log, death_signal=signal.SIGTERM, cwd=cwd)
    try:
        code = process.wait()
    except BaseException:
        children.stop(process, signal.SIGTERM, 10)
        raise
    if code != 0:
        raise StartFailure(f"the release step failed ({command}):\n{children.last_lines(log_file, 12)}")


def _wait_until_ready(base_url: str, supervisor: Supervisor) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    answer = "no answer"
    while time.monotonic() < deadline:
        if supervisor.wait(timeout=0.05):  # Raises with the reason when it has given up.
            raise StartFailure("the processes stopped before they were ready")
        try:
            response = here.get(f"{base_url}/health/ready", timeout=5)
        except requests.RequestException:
            continue
        if response.status_code == 200:
            return
        answer = f"{response.status_code} {response.text.strip()[:500]}"
    raise StartFailure(f"not ready after {_READY_SECONDS:.0f} s: {base_url}/health/ready says: {answer}")
