"""What a running coordinator's processes take: memory at most, and CPU so far.

One rule: nobody is asked to report. The kernel keeps the highest resident memory of a process (VmHWM). What those of
PostgreSQL have is mostly the cache they share: their own (RssAnon) is looked at a few times a second.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from deploy.coordinator import Coordinator

_NAMES = ("web", "worker", "scheduler")
_LOOK_EVERY = 0.2
_SMALLEST = 16 << 20
"""A process below this is only another's attendant."""


class Watch:
    """Watches the processes of a coordinator. `peaks` are bytes by process since the last `reset`."""

    def __init__(self, running: Coordinator) -> None:
        self.peaks: dict[str, int] = {}
        servers = running.engines
        assert servers.postgres is not None  # the bench starts engines of its own
        assert servers.redis is not None
        self._ours = {name: pid for name in _NAMES if (pid := running.supervisor.pid(name))}
        self._redis, self._postgres = servers.redis.pid, servers.postgres.pid
        self._over = threading.Event()
        self._named: Mapping[str, int] = {}

    def reset(self) -> None:
        """Forget the peaks; the kernel's too."""
        self._named = self._find()
        for pid in self._named.values():
            with contextlib.suppress(OSError):
                Path(f"/proc/{pid}/clear_refs").write_text("5")
        self.peaks = {}

    def cpu(self) -> float:
        """Seconds of CPU of all of them and of whatever they started, until now."""
        total = 0.0
        for pid in (*self._ours.values(), self._redis, self._postgres):
            with contextlib.suppress(psutil.NoSuchProcess):
                leader = psutil.Process(pid)
                # Children that are gone count where they were waited for.
                for process in (leader, *leader.children(recursive=True)):
                    with contextlib.suppress(psutil.NoSuchProcess):
                        times = process.cpu_times()
                        total += times.user + times.system + times.children_user + times.children_system
        return total

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Look while the context lasts."""
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _run(self) -> None:
        while not self._over.wait(_LOOK_EVERY):
            self.look()

    def look(self) -> None:
        """Look once."""
        for name, pid in self._named.items():
            self._note(name, pid, "VmHWM")
        with contextlib.suppress(psutil.NoSuchProcess):
            for backend in psutil.Process(self._postgres).children():
                self._note("postgres, the largest process", backend.pid, "RssAnon")
                self._note("postgres, what all share", backend.pid, "RssShmem")

    def _note(self, name: str, pid: int, what: str) -> None:
        with contextlib.suppress(OSError, KeyError):
            self.peaks[name] = max(self.peaks.get(name, 0), _status(pid)[what])

    def _find(self) -> Mapping[str, int]:
        found: dict[str, int] = {}
        for name, pid in self._ours.items():
            with contextlib.suppress(psutil.NoSuchProcess):
                serving = [child.pid for child in psutil.Process(pid).children() if child.memory_info().rss > _SMALLEST]
                several = {f"{name} {place}": child for place, child in enumerate(serving, 1)}
                found |= several or {name: pid}
        return found | {"redis": self._redis}


def _status(pid: int) -> dict[str, int]:
    """Bytes by name, of what the kernel tells in kB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    parts = (line.split() for line in lines if line.endswith(" kB"))
    return {name.rstrip(":"): int(number) * 1024 for name, number, _ in parts}
