"""`make demo`: five operators play one whole round on this machine, and the draw is verified from the outside.

One rule: it is a demonstration only if it can fail. Every claim on the screen is checked, the last line says
`verified` only when all of them held, and nothing is left running or lying around either way.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import secrets
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from deploy.children import last_lines
from deploy.coordinator import coordinator
from deploy.data_folder import DataFolder, throw_away
from deploy.demo_checks import check
from deploy.demo_desk import Desk
from deploy.demo_receiver import Receiver
from deploy.demo_round import OPERATORS, Pace, Scene, onboard, play
from deploy.demo_screen import Screen
from deploy.engines import leave_on_sigterm
from deploy.failure import Failure
from deploy.given import refuse_unless_empty
from deploy.sandbox import admin_key
from player.coordinator import CoordinatorError

# What programs need to run at all, and servers to use instead of our own. Every other setting is left out: a
# demonstration is the same everywhere.
_SERVERS = ("DATABASE_URL", "REDIS_URL")
_INHERITED = ("PATH", "HOME", "USER", "TMPDIR", "TZ", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "PYTHONPATH", *_SERVERS)
_INHERITED_PREFIXES = ("LC_", "LANG")


def main() -> int:
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    leave_on_sigterm()
    # A shell that starts us in the background has us ignore Ctrl-C; then `kill -INT` would not stop us either.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # All we call is this machine, which a proxy could not reach.
    os.environ.update(NO_PROXY="127.0.0.1", no_proxy="127.0.0.1")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    screen = Screen()
    try:
        # Somebody's database may be named there: the demo plays in an empty one or not at all.
        refuse_unless_empty(*(os.environ.get(name) for name in _SERVERS))
        with throw_away() as folder:
            round_id = _demonstrate(folder, screen)
    except (Failure, CoordinatorError, OSError) as failure:
        print(f"demo: failed: {failure}", file=sys.stderr, flush=True)
        return 1
    except KeyboardInterrupt:
        print("demo: interrupted, everything is stopped", file=sys.stderr, flush=True)
        return 130
    except SystemExit as stop:
        print("demo: stopped, and everything with it", file=sys.stderr, flush=True)
        return stop.code if isinstance(stop.code, int) else 1
    print(f"demo: round {round_id} CLOSED, verified", flush=True)
    return 0


def _demonstrate(folder: DataFolder, screen: Screen) -> int:
    """The whole of it; returns the id of the round, in a fresh database always 1."""
    logs = folder.path / "logs"
    screen.step("starting PostgreSQL, Redis, web, worker and scheduler")
    began = time.monotonic()
    with (
        _quoting(logs),  # why it would not start
        coordinator(folder, log_dir=logs, environ=_inherited(os.environ)) as running,
        _quoting(logs),  # what went wrong then, before stopping adds to the logs
        Receiver() as receiver,
    ):
        pace = Pace.of_a_machine_that_starts_in(time.monotonic() - began)
        seed = secrets.randbits(32)
        screen.step(f"ready at {running.base_url}; tickets are made from seed {seed}")
        scene = Scene(running, Desk(running.base_url, admin_key(running, "demo")), receiver, screen)
        companies = onboard(scene, seed)
        screen.step(f"{OPERATORS} operators: approved, logged in, webhooks registered, deposits paid")
        round_id = play(scene, companies, pace)
        check(scene, companies, round_id)
        for company in companies:
            company.coordinator.close()
        return round_id


class _Quoted(Failure):
    """A failure together with what the logs say."""


@contextlib.contextmanager
def _quoting(logs: Path) -> Iterator[None]:
    """Add the end of the logs to a failure: their folder is gone before anybody could look into it."""
    try:
        yield
    except _Quoted:
        raise
    except (Failure, CoordinatorError, OSError) as failure:
        raise _Quoted(f"{failure}{_last_words(logs)}") from None


def _inherited(environ: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value for name, value in environ.items() if name in _INHERITED or name.startswith(_INHERITED_PREFIXES)
    }


def _last_words(logs: Path) -> str:
    """The end of every log that has a complaint in it; of all of them when none has."""
    files = sorted(logs.glob("*.log"))
    complaining = [file for file in files if any(map(_complains, file.read_text(errors="replace").splitlines()))]
    return "".join(f"\n{file.name} ends with:\n{last_lines(file)}" for file in complaining or files)


def _complains(line: str) -> bool:
    try:
        return json.loads(line).get("level") in ("warning", "error", "critical")
    except (ValueError, AttributeError):
        return "Traceback" in line or "died with" in line


if __name__ == "__main__":
    sys.exit(main())
