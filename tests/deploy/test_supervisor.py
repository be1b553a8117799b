"""The supervisor: what dies is started again without leftovers, what must stop stops in time."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deploy.failure import StartFailure
from deploy.procfile import search_path
from deploy.supervisor import Supervisor
from tests.polling import family, gone, until

# A leader with a child of its own, as dramatiq and gunicorn have. The child ignores SIGTERM, the leader
# does not.
LEADER = """sh -c '(trap "" TERM; while :; do sleep 0.1; done) & wait'"""
Start = Callable[..., Supervisor]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    running = []

    def start(procfile: str, *, log: bool = True, **env: str) -> Supervisor:
        supervisor = Supervisor(
            procfile, {"PATH": search_path(), **env}, tmp_path / "logs" if log else None, cwd=tmp_path
        )
        running.append(supervisor)
        supervisor.start()
        return supervisor

    yield start
    for supervisor in running:
        supervisor.stop(0.1)


def children_of(supervisor: Supervisor, name: str) -> list[int]:
    pid = supervisor.pid(name)
    return [] if pid is None else family(pid)


def test_a_killed_process_is_started_again_and_its_children_are_gone(start: Start) -> None:
    supervisor = start(f"worker: {LEADER}\nweb: sleep 1000\n")
    first, web = supervisor.pid("worker"), supervisor.pid("web")
    assert first is not None
    orphans = until(lambda: children_of(supervisor, "worker"))
    os.kill(first, signal.SIGKILL)
    until(lambda: supervisor.pid("worker") not in (None, first), within=5, what="started again")
    assert gone(orphans)
    assert supervisor.pid("web") == web


def test_stopping_ends_what_ignores_sigterm_within_the_bound(start: Start) -> None:
    supervisor = start(f"worker: {LEADER}\nstubborn: sh -c 'trap \"\" TERM; while :; do sleep 0.1; done'\n")
    pids = [pid for name in ("worker", "stubborn") if (pid := supervisor.pid(name))]
    pids += until(lambda: children_of(supervisor, "worker"))
    until(lambda: children_of(supervisor, "stubborn"), what="the signal is ignored")
    begun = time.monotonic()
    supervisor.stop(1.0)
    assert 0.9 < time.monotonic() - begun < 10
    assert gone(pids)
    assert supervisor.wait(0)


def test_stopping_does_not_wait_longer_than_the_processes_do(start: Start) -> None:
    supervisor = start("web: sleep 1000\nworker: sleep 1000\n")
    begun = time.monotonic()
    supervisor.stop(25)
    assert time.monotonic() - begun < 10


class Interrupted(Exception):
    """Stands for what SIGTERM and Ctrl-C raise in the main thread."""


def test_a_signal_while_we_wait_does_not_cut_the_draining_short(start: Start) -> None:
    def interrupt(*_: object) -> None:
        raise Interrupted

    supervisor = start("worker: sh -c 'trap \"sleep 0.7; exit\" TERM; while :; do sleep 0.05; done'\n")
    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        with pytest.raises(Interrupted):
            supervisor.wait(10)
    finally:
        signal.signal(signal.SIGUSR1, before)
    begun = time.monotonic()
    supervisor.stop(10)
    assert time.monotonic() - begun > 0.5


def test_a_process_that_keeps_dying_stops_the_others_with_a_reason(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deploy.supervisor._FIRST_PAUSE", 0.01)
    supervisor = start("web: sleep 1000\nworker: sh -c 'echo no luck; exit 3'\n")
    web = supervisor.pid("web")
    with pytest.raises(StartFailure, match=r"worker died 5 times .* exit code 3;(?s:.*)no luck"):
        supervisor.wait(10)
    assert gone([web] if web else [])


def test_output_goes_to_one_log_a_process(start: Start, tmp_path: Path) -> None:
    start('web: sh -c "echo on port $PORT; sleep 1000"\n', PORT="8123")
    log = tmp_path / "logs" / "web.log"
    until(lambda: log.exists() and log.read_text() == "on port 8123\n")


def test_or_to_our_output_behind_the_name(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    start("web: sh -c 'echo hello; sleep 1000'\nrelease: sh -c 'echo never'\n", log=False)
    said = ""

    def heard() -> bool:
        nonlocal said
        said += capsys.readouterr().out
        return bool(said)

    until(heard)
    assert said == "web       | hello\n"


def test_a_line_that_is_no_process_is_refused() -> None:
    with pytest.raises(StartFailure, match="not 'name: command'"):
        Supervisor("what is this\n", {})
