"""The coordinator under measurement: its worker and scheduler, a thousand operators, and news to tell them.

The one rule kept here: how webhooks are sent is none of its business. It announces as the product does, in a
transaction with a bell after the commit, and knows of the sender only that nothing is due once all is delivered.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import event, func, select
from sqlalchemy.orm import Session

from deploy import children
from deploy.procfile import RELEASE, TOP, argv, read_procfile
from deploy.supervisor import Supervisor
from models import tables
from models.credentials import issue_api_key
from models.deliveries import Delivery, announce
from models.operators import Operator
from models.session import engine, transaction
from tasks.bell import Bell, ring_after_commit
from tests.factories import a_round

__all__ = ["Ours", "coordinator", "tables"]

_PROCESSES = ("worker", "scheduler")
_START_SECONDS = 60.0
_STOP_SECONDS = 3.0  # A measurement has nothing to lose: calls that hang are not waited for.


class Ours:
    """Operators with webhooks, in the order of the addresses given, and a round that all are invited to."""

    def __init__(self, urls: Sequence[str]) -> None:
        self.operators = [f"op_{place:04}" for place in range(len(urls))]
        with transaction() as session:
            for operator_id, url in zip(self.operators, urls, strict=True):
                who = {"name": operator_id, "jurisdiction": "Malta", "address": f"0x{'0' * 40}"}
                session.add(Operator(id=operator_id, webhook_url=url, **who))
                session.flush()
                issue_api_key(session, operator_id)
        self.round_id = a_round(self.operators)

    def announce(self, data: dict[str, Any], places: Sequence[int]) -> tuple[float, list[str]]:
        """Tell the operators in these places of a draw; returns when that was committed (Unix time) and the ids."""
        committed: list[float] = []
        with transaction() as session:
            # Listens first: what the bells cost afterwards counts.
            event.listen(session, "after_commit", lambda session: committed.append(time.time()))
            told = [self.operators[place] for place in places]
            ids = announce(session, "round.drawn", told, self.round_id, data)
            ring_after_commit(session, Bell.DELIVERIES, ids)
        return committed[0], [str(delivery_id) for delivery_id in ids]

    def wait_until_done(self, seconds: float) -> None:
        """Wait until no delivery is due any more, now or later; or so long."""
        deadline = time.monotonic() + seconds
        pending = select(func.count()).select_from(Delivery).where(Delivery.due_at.is_not(None))
        with Session(engine()) as session:
            while session.scalars(pending).one() and time.monotonic() < deadline:
                session.rollback()
                time.sleep(0.05)


@contextlib.contextmanager
def coordinator(urls: Sequence[str], env: Mapping[str, str], logs: Path) -> Iterator[Ours]:
    """Run the release step, then the processes that webhooks need, as the Procfile says, while the context lasts.

    It is entered when everybody has heard that a round opened.
    """
    commands = read_procfile((TOP / "Procfile").read_text())
    with children.open_log(logs / "release.log") as log:
        done = subprocess.run(argv(commands[RELEASE]), cwd=TOP, env=dict(env), stdout=log, stderr=log, check=False)
    if done.returncode:
        raise RuntimeError("the release step failed")
    ours = Ours(urls)
    procfile = "".join(f"{name}: {commands[name]}\n" for name in _PROCESSES)
    supervisor = Supervisor(procfile, env, logs)
    try:
        supervisor.start()
        ours.wait_until_done(_START_SECONDS)
        yield ours
    finally:
        supervisor.stop(_STOP_SECONDS)
        engine().dispose()


def size() -> tuple[int, int]:
    """How many worker processes there are and how many threads each has: the peers get as many."""
    return int(os.environ.get("WORKER_PROCESSES", "2")), int(os.environ.get("WORKER_THREADS", "8"))
