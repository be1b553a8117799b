"""The worker process: ``python -m tasks.worker``.

The one rule kept here: a stopped worker is gone within 25 seconds; what it was doing is done by the next one.
"""

import os
import resource
import sys

from models.schema import exit_unless_usable

SHUTDOWN_MS = 20_000
IDLE_POLL_MS = 50
MOST_FILES = 65_536


def main() -> None:
    """Become the Dramatiq command line with our settings; WORKER_PROCESSES and WORKER_THREADS size it."""
    exit_unless_usable("worker")
    _allow_many_files()
    # By default an idle worker sleeps up to half a second before it sees a new message.
    os.environ.setdefault("dramatiq_worker_timeout", str(IDLE_POLL_MS))
    command = [
        sys.executable, "-m", "dramatiq", "tasks.actors",
        "--processes", os.environ.get("WORKER_PROCESSES", "2"),
        "--threads", os.environ.get("WORKER_THREADS", "8"),
        "--worker-shutdown-timeout", str(SHUTDOWN_MS),
        "--skip-logging",
    ]  # fmt: skip
    os.execv(sys.executable, command)  # noqa: S606 - our own arguments


def _allow_many_files() -> None:
    """Every webhook that hangs holds a socket, and many systems give 1,024 to whoever does not ask for more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


if __name__ == "__main__":
    main()
