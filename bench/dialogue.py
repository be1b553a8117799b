"""A child process that answers every line of JSON with one.

The one rule kept here: the child is gone when the context is left, in whatever way.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from deploy import children
from deploy.procfile import TOP


class Dialogue:
    """The child as its starter sees it."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process, self._log = process, log

    def ask(self, *question: object) -> Any:
        """Say something and wait for the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(question).encode() + b"\n")
        self._process.stdin.flush()
        return self.hear()

    def hear(self) -> Any:
        """What it says next.

        :raises RuntimeError: it has ended instead.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"a process ended too early:\n{children.last_lines(self._log)}")
        return json.loads(line)


@contextlib.contextmanager
def dialogue(argv: Sequence[str], log: Path, env: Mapping[str, str] = os.environ) -> Iterator[Dialogue]:
    """The child while the context lasts. What it complains about goes to ``log``."""
    with children.open_log(log) as errors:
        process = subprocess.Popen(
            list(argv),
            cwd=TOP,
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
            preexec_fn=children.leash(signal.SIGTERM),
        )
    try:
        yield Dialogue(process, log)
    finally:
        children.stop(process, signal.SIGTERM, 5)
