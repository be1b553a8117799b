"""A program that somebody started at a terminal and stops with Ctrl-C: `make run` and `make run-player`.

One rule: it ends the way it says. Stopped, it has stopped all of it; failed, it prints one message and leaves nothing
running.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

from deploy.engines import leave_on_sigterm
from deploy.failure import Failure
from deploy.processes import Running


def in_foreground(name: str, run: Callable[[], None]) -> int:
    """Do `run` until it is stopped; the exit code. What goes wrong is told in one line behind the command's `name`."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    leave_on_sigterm()
    try:
        run()
    except (Failure, OSError) as failure:
        print(f"{name}: {failure}", file=sys.stderr, flush=True)
        return 1
    except (KeyboardInterrupt, SystemExit):
        pass
    print("stopped", flush=True)
    return 0


def until_stopped(running: Running) -> None:
    """Say that it is ready, and wait until somebody stops it."""
    print(f"ready: {running.base_url}, described at {running.base_url}/docs (Ctrl-C stops it)", flush=True)
    try:
        running.supervisor.wait()
    except (KeyboardInterrupt, SystemExit):
        print("\nstopping: requests and work in hand are finished first", flush=True)
        raise
