"""A worker that dies where it is told: by SIGKILL, at the n-th thing that it is about to ask of the database.

One rule: nothing of ours is replaced. A worker answers one bell with the actor that production has, in a process of its
own; only its driver's connection counts what passes through it, and ends the process when the count is reached.

Places are: before each statement, in a COPY after every ``ROWS``-th row, before each commit, and after it, when the
bells are not rung yet. These are all there are: to the database a process that dies while a statement runs has died
after it, and one that dies while it commits has died before or after that.

``python -m tests.mortal`` imports everything once, opens nothing, and forks a worker for each line it reads.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, ClassVar

import psycopg2.extensions

ROWS = 500
SHARD = 128 << 10
"""Bytes of tickets in a shard: else no round of a test had more than one."""
AFTER_COMMIT = "after a commit"


@dataclass(frozen=True)
class Life:
    """What became of a worker. ``place``: where it died; None when it came to the end of its work."""

    place: str | None


class Mortal(psycopg2.extensions.connection):
    """A connection that counts, and kills its process at ``dies_at``; never, when that is None."""

    dies_at: ClassVar[int | None] = None
    passed: ClassVar[int] = 0
    last_words: ClassVar[int]

    @classmethod
    def pass_by(cls, place: str) -> None:
        """One more place."""
        cls.passed += 1
        if cls.passed == cls.dies_at:
            os.write(cls.last_words, place.encode())
            os.kill(os.getpid(), signal.SIGKILL)

    def cursor(self, *args: Any, **named: Any) -> Any:
        """A cursor that counts."""
        return super().cursor(*args, **{"cursor_factory": MortalCursor} | named)

    def commit(self) -> None:
        """Commit, if it lives."""
        self.pass_by("before a commit")
        super().commit()
        self.pass_by(AFTER_COMMIT)


class MortalCursor(psycopg2.extensions.cursor):
    """Counts statements, and rows on their way out."""

    def execute(self, query: Any, values: Any = None) -> None:
        Mortal.pass_by(_named(query))
        super().execute(query, values)

    def executemany(self, query: Any, values: Any) -> None:
        Mortal.pass_by(_named(query))
        super().executemany(query, values)

    def copy_expert(self, sql: Any, file: Any, size: int = 8192) -> None:
        Mortal.pass_by(_named(sql))
        super().copy_expert(sql, Watched(file), size)
        Mortal.pass_by("after a COPY")


class Watched:
    """A file whose rows are counted on their way in; on their way out there is nothing to count."""

    def __init__(self, file: Any) -> None:
        self._file, self._rows = file, 0

    def write(self, row: bytes) -> Any:
        self._rows += 1
        if self._rows % ROWS == 0:
            Mortal.pass_by("in a COPY")
        return self._file.write(row)

    def read(self, size: int = -1) -> Any:
        return self._file.read(size)


def _named(query: Any) -> str:
    text = query.decode() if isinstance(query, bytes) else str(query)
    return " ".join(text.split())[:60]


class Workers:
    """The workers of one database, one after the other."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def answer(self, bell: str, row_id: int, dies_at: int | None = None) -> Life:
        """Let a new worker answer a bell."""
        into, out = self._process.stdin, self._process.stdout
        assert into is not None
        assert out is not None
        into.write(json.dumps({"bell": bell, "row_id": row_id, "dies_at": dies_at}) + "\n")
        into.flush()
        told = json.loads(out.readline())
        assert not told["failed"], f"{bell} {row_id} raised: see standard error"
        return Life(told["place"])


@contextmanager
def workers(database_url: str) -> Iterator[Workers]:
    """Workers on this database, which the caller's environment need not name."""
    environment = os.environ | {"DATABASE_URL": database_url, "LOG_LEVEL": "ERROR"}
    with subprocess.Popen(
        [sys.executable, "-m", "tests.mortal"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Workers(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()  # which ends it


def main(lines: IO[str]) -> None:
    """Fork a worker for each line, and say what became of it."""
    from sqlalchemy import event
    from sqlalchemy.orm import configure_mappers

    import models.matching
    import tasks.actors  # noqa: F401 - all actors, as a worker has them
    from models.session import engine
    from tasks.broker import broker

    models.matching.SMALL = SHARD  # type: ignore[misc]
    configure_mappers()
    # What a worker learns in its first second is not learned by each of them anew. No connection is left open.
    event.listen(engine(), "do_connect", _be_mortal)
    for bell in ("advance_round", "do_piece"):
        broker.get_actor(bell).fn(0)
    engine().dispose()
    gc.freeze()
    for line in lines:
        print(json.dumps(_life(**json.loads(line))), flush=True)


def _life(bell: str, row_id: int, dies_at: int | None) -> dict[str, Any]:
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        Mortal.last_words = theirs
        _live(bell, row_id, dies_at)
    os.close(theirs)
    with os.fdopen(ours) as pipe:
        place = pipe.read()
    _, status = os.waitpid(child, 0)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    return {"place": place or None, "failed": status != 0 and not killed}


def _live(bell: str, row_id: int, dies_at: int | None) -> None:
    from models.session import transaction
    from tasks.broker import broker

    try:
        with transaction() as session:
            session.connection()  # what a new connection asks is no step of anything
        Mortal.passed, Mortal.dies_at = 0, dies_at
        broker.get_actor(bell).fn(row_id)
    except BaseException:  # noqa: BLE001 - whatever it is: it must not go on in the parent's loop
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


def _be_mortal(_dialect: Any, _record: Any, _args: Any, named: dict[str, Any]) -> None:
    named["connection_factory"] = Mortal


if __name__ == "__main__":
    # Under its own name, so that there is one class and not two.
    from tests import mortal

    mortal.main(sys.stdin)
