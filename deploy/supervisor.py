"""Keeps the processes of the Procfile running, and stops them.

One rule: a process and everything it started live and die together. Before a process is started again,
whatever the last one left in its group is killed, so two generations never work side by side.
"""

from __future__ import annotations

import collections
import contextlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from deploy import children
from deploy.failure import StartFailure
from deploy.procfile import RELEASE, TOP, argv, read_procfile

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 5.0
_DEATHS, _WITHIN = (
    5,
    30.0,
)  # This many deaths in so many seconds: something is wrong that a restart won't cure.
_LOOK_EVERY = 0.05
_LAST_WORDS = 8  # lines


class Supervisor:
    """Runs every process that `procfile` names, except `release`, with `env` and in the project's folder.

    Their output goes to `log_dir`/NAME.log, or to our standard output, each line behind its process's name.
    One thread starts, watches and stops them all: the kernel's death signal (deploy/children.py) belongs to
    the thread that forked, so it has to be one that lives until the end.
    """

    def __init__(self, procfile: str, env: Mapping[str, str], log_dir: Path | None = None, *, cwd: Path = TOP) -> None:
        commands = read_procfile(procfile)
        self._lives = [_Life(name, command, env, log_dir, cwd) for name, command in commands.items() if name != RELEASE]
        self._stopping = threading.Event()
        self._patience = 25.0
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)
        self._started = threading.Event()
        # Waited for instead of the thread: a signal handler that raises during Thread.join makes Python 3.11 believe
        # that the thread has ended, and the next join returns at once.
        self._ended = threading.Event()
        self.failure: str | None = None

    def start(self) -> None:
        """Start them all; returns once each has a pid. A process that then fails is started again."""
        self._thread.start()
        self._started.wait()

    def pid(self, name: str) -> int | None:
        """The process's pid, None while it waits to be started again.

        KeyError for a name not in the Procfile.
        """
        for life in self._lives:
            if life.name == name:
                return life.pid
        raise KeyError(name)

    def stop(self, patience: float = 25.0) -> None:
        """SIGTERM to all at once, up to `patience` seconds to drain, then SIGKILL to what is left.

        Idempotent.
        """
        self._patience = patience
        self._stopping.set()
        if self._thread.ident is not None:
            self._ended.wait()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until all have stopped for good; False after `timeout` seconds. StartFailure if we gave up."""
        ended = self._ended.wait(timeout)
        if self.failure is not None and ended:
            raise StartFailure(self.failure)
        return ended

    def _run(self) -> None:
        try:
            for life in self._lives:
                life.begin()
            self._started.set()
            while not self._stopping.wait(_LOOK_EVERY):
                for life in self._lives:
                    life.look()
        except StartFailure as failure:
            self.failure = str(failure)
        except OSError as error:
            self.failure = f"cannot start a process: {error}"
        finally:
            self._end_all()
            self._started.set()
            self._ended.set()

    def _end_all(self) -> None:
        deadline = time.monotonic() + self._patience
        for life in self._lives:
            life.ask_to_stop()
        for life in self._lives:
            life.end(max(0.0, deadline - time.monotonic()))


class _Life:
    """One name of the Procfile and the process that currently bears it."""

    def __init__(self, name: str, command: str, env: Mapping[str, str], log_dir: Path | None, cwd: Path) -> None:
        self.name = name
        self._command, self._env, self._cwd = command, env, cwd
        self._log = None if log_dir is None else log_dir / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._deaths: collections.deque[float] = collections.deque(maxlen=_DEATHS)
        self._begin_at = 0.0
        self._last_words: collections.deque[str] = collections.deque(maxlen=_LAST_WORDS)

    @property
    def pid(self) -> int | None:
        process = self._process
        return None if process is None else process.pid

    def begin(self) -> None:
        if self._log is None:
            self._process = self._spawn(subprocess.PIPE)
            lines = self._process.stdout
            threading.Thread(target=self._relay, args=(lines,), daemon=True).start()
        else:
            self._log.parent.mkdir(parents=True, exist_ok=True)
            with children.open_log(self._log) as log:
                self._process = self._spawn(log)

    def look(self) -> None:
        """Notice a death, and start again when the pause after it is over. StartFailure after too many."""
        if self._process is None:
            if time.monotonic() >= self._begin_at:
                self.begin()
        elif (code := self._process.poll()) is not None:
            children.kill_group(self._process)
            self._process = None
            now = time.monotonic()
            self._deaths.append(now)
            recent = sum(now - death <= _WITHIN for death in self._deaths)
            if recent == _DEATHS:
                raise StartFailure(
                    f"{self.name} died {_DEATHS} times in {_WITHIN:.0f} s, the last time with {_how(code)}; "
                    f"its last words:\n{self._words()}"
                )
            pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (recent - 1))
            self._begin_at = now + pause
            self._say(f"died with {_how(code)}; starting again in {pause:g} s")

    def ask_to_stop(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()

    def end(self, patience: float) -> None:
        if self._process is None:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
        children.kill_group(self._process)
        self._process = None

    def _spawn(self, output: IO[bytes] | int) -> subprocess.Popen[bytes]:
        return children.spawn(
            argv(self._command), env=self._env, output=output, death_signal=signal.SIGTERM, cwd=self._cwd
        )

    def _relay(self, lines: IO[bytes]) -> None:
        with lines:
            for line in lines:
                text = line.decode(errors="replace").rstrip("\n")
                self._last_words.append(text)
                self._say(text)

    def _say(self, text: str) -> None:
        line = f"{self.name:<9} | {text}\n"
        if self._log is not None:
            with children.open_log(self._log) as log:
                log.write(line.encode())
            return
        # A closed pipe (`make run | head`) must not take the coordinator down.
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.write(line)
            sys.stdout.flush()

    def _words(self) -> str:
        if self._log is not None:
            return f"{children.last_lines(self._log, _LAST_WORDS)}\n(all of them: {self._log})"
        return "\n".join(f"    {line}" for line in self._last_words) or "    (none)"


def _how(code: int) -> str:
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name
