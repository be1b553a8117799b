"""The folder one running coordinator keeps its data in.

One rule: a folder has one owner at a time. Holding a `DataFolder` means holding its lock, which the kernel
releases when the owner dies, however it dies.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from deploy.failure import AlreadyRunning

_PREFIX = "lottery-"
# A socket's path may have 107 bytes on Linux; ours add at most 17 to that of the folder.
_LONGEST_FOLDER = 80


@dataclass(frozen=True)
class DataFolder:
    path: Path


@contextlib.contextmanager
def hold(path: Path) -> Iterator[DataFolder]:
    """Take `path` (made when missing) until the block ends; AlreadyRunning if somebody has it."""
    path.mkdir(mode=_mode(), parents=True, exist_ok=True)
    lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(lock, 20).decode().strip() or "unknown"
            raise AlreadyRunning(f"already running on {path} (pid {owner})") from None
        os.ftruncate(lock, 0)
        os.write(lock, f"{os.getpid()}\n".encode())
        yield DataFolder(path)
    finally:
        os.close(lock)


@contextlib.contextmanager
def throw_away() -> Iterator[DataFolder]:
    """A fresh folder under the system's temporary one, gone when the block ends.

    Its name is short enough for sockets to live in it. Folders that a killed run left behind are removed
    first: nobody holds their lock.
    """
    parent = _short_temporary_folder()
    _sweep(parent)
    path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    path.chmod(_mode())
    try:
        with hold(path) as folder:
            yield folder
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _mode() -> int:
    """For us alone. Root's servers run as another account (deploy/account.py), which has to pass through."""
    return 0o711 if os.geteuid() == 0 else 0o700


def _short_temporary_folder() -> Path:
    preferred = Path(tempfile.gettempdir())
    return preferred if len(str(preferred)) <= _LONGEST_FOLDER - 20 else Path("/tmp")  # noqa: S108


def _sweep(parent: Path) -> None:
    for path in parent.glob(f"{_PREFIX}*"):
        # A young folder may be between its making and its locking; a stranger's is not ours to judge.
        with contextlib.suppress(OSError, AlreadyRunning):
            facts = path.lstat()
            if facts.st_uid == os.geteuid() and time.time() - facts.st_mtime > 60 and (path / "lock").exists():
                with hold(path):
                    shutil.rmtree(path, ignore_errors=True)
