"""Somebody who kills a node's processes with SIGKILL, at random moments, while the demo goes on.

One rule: it kills what its seed says, and not so often that the supervisor takes it for a fault that no restart cures.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
from types import TracebackType

from deploy.processes import Running

_NAMES = ("web", "worker", "clock")
_PAUSE = (2.5, 5.0)
"""Seconds between two kills: each of the three dies less than five times in thirty seconds."""


class Killer:
    """Kills from when the block is entered until it is left; `killed` is how often."""

    def __init__(self, node: Running, seed: int) -> None:
        self._node = node
        # A seed is for doing the same again, and these are no secrets.
        self._random = random.Random(seed)  # noqa: S311
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="killer", daemon=True)
        self.killed = 0

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        order = list(_NAMES)
        while not self._over.wait(self._random.uniform(*_PAUSE)):
            # In turns of three, each in another order, so that none of them dies too often.
            name = order.pop(self._random.randrange(len(order)))
            order = order or list(_NAMES)
            pid = self._node.supervisor.pid(name)
            if pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
                    self.killed += 1
