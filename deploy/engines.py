"""PostgreSQL and Redis for one machine: `with engines() as servers:` gives two URLs that work.

One rule: real servers, never mocks. They start as our children on private sockets and are gone when the
block ends, or when we are killed. A URL already in the environment is used instead, after a look that it
answers.

    python -m deploy.engines -- COMMAND…     run a command against throw-away engines, return its exit code
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn

from deploy import children, given
from deploy.data_folder import DataFolder, throw_away
from deploy.failure import EngineError
from deploy.postgres_server import PostgresServer
from deploy.procfile import search_path
from deploy.redis_server import RedisServer

__all__ = ["EngineError", "Engines", "engines"]


@dataclass(frozen=True)
class Engines:
    """`postgres` and `redis` are None where the environment named a server of its own."""

    database_url: str
    redis_url: str
    postgres: PostgresServer | None
    redis: RedisServer | None

    @property
    def environment(self) -> dict[str, str]:
        return {"DATABASE_URL": self.database_url, "REDIS_URL": self.redis_url}


@contextlib.contextmanager
def engines(
    folder: DataFolder | None = None, *, durable: bool = False, environ: Mapping[str, str] = os.environ
) -> Iterator[Engines]:
    """Start what `environ` does not name. `folder` keeps the data; without one it is thrown away at the end.

    `durable` makes a commit survive a power cut (fsync). Raises EngineError, and then nothing is left
    running. Stops within 20 s. Call it from a thread that lives as long as the servers should (see
    children.spawn).
    """
    database_url, redis_url = environ.get("DATABASE_URL"), environ.get("REDIS_URL")
    if database_url:
        given.check_database(database_url)
    if redis_url:
        given.check_redis(redis_url)
    with contextlib.ExitStack() as undo:
        # Sockets want a short path, which a data folder need not have. Theirs is a throw-away folder, locked:
        # should we be killed, a later run sweeps it up.
        temporary = undo.enter_context(throw_away())
        sockets = temporary.path / "s"
        sockets.mkdir(mode=0o700)
        folder = folder or temporary
        postgres = redis = None
        if not database_url:
            postgres = PostgresServer(folder.path / "postgres", sockets, folder.path / "postgres.log", durable=durable)
            undo.callback(postgres.stop)
            postgres.start()
            database_url = postgres.url
        if not redis_url:
            redis = RedisServer(sockets, folder.path / "redis.log")
            undo.callback(redis.stop)
            redis.start()
            redis_url = redis.url
        yield Engines(database_url, redis_url, postgres, redis)


def leave_on_sigterm() -> None:
    """Turn SIGTERM into SystemExit, so that every `with` block on the way out does its part."""

    def leave(number: int, frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, leave)


def main(arguments: list[str]) -> int:
    command = arguments[1:] if arguments[:1] == ["--"] else arguments
    if not command:
        print("usage: python -m deploy.engines -- COMMAND [ARGUMENT…]", file=sys.stderr)
        return 2
    logging.basicConfig(level=logging.WARNING, format="engines: %(message)s")
    leave_on_sigterm()
    try:
        # Always our own servers: a check must never touch the database that DATABASE_URL happens to name.
        with engines(environ={}) as servers:
            env = os.environ | servers.environment | {"PATH": search_path()}
            process = None
            try:
                with children.signals_held():  # A stop that came while the command starts would lose its pid.
                    leash = children.leash(signal.SIGTERM)
                    process = subprocess.Popen(command, env=env, preexec_fn=leash)
                code = process.wait()
            except BaseException:
                if process is not None:
                    children.stop_family(process)
                raise
            return code if code >= 0 else 128 - code
    except (EngineError, OSError) as error:
        print(f"engines: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
