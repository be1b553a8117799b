"""Child processes that never outlive us.

One rule: every process started here is told by the kernel when we die, however we die. `kill -9` of the
owner leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

import psutil

from deploy.account import Account

_PR_SET_PDEATHSIG = 1
_STOPPING = {signal.SIGINT, signal.SIGTERM}
# Looked up before any fork: between fork and exec nothing may be imported or allocated that another thread
# could have been holding a lock on.
_prctl: Callable[..., int] | None = getattr(ctypes.CDLL(None), "prctl", None)


def leash(death_signal: signal.Signals) -> Callable[[], None]:
    """For Popen's preexec_fn: when the thread that forks dies, the child receives `death_signal`."""
    owner = os.getpid()

    def in_the_child() -> None:
        # Popen calls this after the change of user, which would undo the setting.
        if _prctl is not None:
            _prctl(_PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)
        if os.getppid() != owner:  # The owner died before the leash was on: no signal will ever come.
            os._exit(1)

    return in_the_child


@contextlib.contextmanager
def signals_held() -> Iterator[None]:
    """Ctrl-C and SIGTERM that come meanwhile take effect when the block ends."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def spawn(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    output: IO[bytes] | int,
    death_signal: signal.Signals,
    user: Account | None = None,
    cwd: Path | str = "/",
) -> subprocess.Popen[bytes]:
    """Start `argv` in a session of its own; when the calling thread dies the child receives `death_signal`.

    A session of its own keeps a terminal's Ctrl-C with us, who stop things in the right order. The kernel
    ties the death signal to the *thread* that forked, so call this only from one that lives as long as the
    child should. `user` is the account to become first (only root can).
    """
    return subprocess.Popen(
        list(argv),
        env=dict(env),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=leash(death_signal),
        user=None if user is None else user.uid,
        group=None if user is None else user.gid,
        extra_groups=None if user is None else [],
    )


def stop(process: subprocess.Popen[bytes], polite: signal.Signals, patience: float) -> bool:
    """Ask with `polite`, wait up to `patience` seconds, then kill the whole group.

    True if asking was enough.
    """
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(polite)
    try:
        process.wait(patience)
        return True
    except subprocess.TimeoutExpired:
        return False
    finally:
        kill_group(process)


def stop_family(process: subprocess.Popen[bytes], patience: float = 10.0) -> None:
    """SIGTERM, then SIGKILL, to a child that shares our terminal's process group, and to all it started."""
    with contextlib.suppress(psutil.NoSuchProcess):
        leader = psutil.Process(process.pid)
        family = [leader, *leader.children(recursive=True)]
        for member in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                member.terminate()
        for member in psutil.wait_procs(family, patience)[1]:
            with contextlib.suppress(psutil.NoSuchProcess):
                member.kill()
    process.wait()


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill whatever is left of the child's process group: children of a leader that was itself killed."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def open_log(path: Path) -> IO[bytes]:
    """Append to `path`, which only we may read: a server's log can quote the data it stumbled over."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab")


def last_lines(log: Path, count: int = 8) -> str:
    """The end of a log file, indented, for an error message."""
    try:
        lines = log.read_text(errors="replace").splitlines()[-count:]
    except FileNotFoundError:
        return "    (no log)"
    return "\n".join(f"    {line}" for line in lines) or "    (empty log)"
