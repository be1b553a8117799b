"""The worker process: ``python -m player.tasks.worker``.

The one rule kept here: a stopped worker is gone within 25 seconds; what it was doing is done by the next one.
"""

import os
import sys

from player.models.schema import exit_unless_usable
from player.payments.port import exit_unless_made


def main() -> None:
    """Become the Dramatiq command line with our settings; WORKER_PROCESSES and WORKER_THREADS size it."""
    exit_unless_usable("worker")
    exit_unless_made("worker")
    # By default an idle worker sleeps up to half a second before it sees a new message.
    os.environ.setdefault("dramatiq_worker_timeout", "50")
    command = [
        sys.executable, "-m", "dramatiq", "player.tasks.actors",
        "--processes", os.environ.get("WORKER_PROCESSES", "1"),
        "--threads", os.environ.get("WORKER_THREADS", "8"),
        "--worker-shutdown-timeout", "20000",
        "--skip-logging",
    ]  # fmt: skip
    os.execv(sys.executable, command)  # noqa: S606 - our own arguments


if __name__ == "__main__":
    main()
