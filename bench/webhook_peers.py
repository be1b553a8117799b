"""What we are measured against: a bare Dramatiq actor, and django-webhook on Celery.

The one rule kept here: as many processes and threads as our worker has, on the same Redis and the same PostgreSQL, and
where a peer can be set up in several ways, in the one that was fastest.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import psycopg2

from bench.dialogue import Dialogue, dialogue
from deploy import children
from deploy.engines import Engines
from deploy.procfile import TOP

_LOCK = TOP / "bench" / "peers.lock"
_VENV = TOP / ".peers-venv"
_STAMP = _VENV / "ready"
_DATABASE = "django_peer"


class NotInstalled(Exception):
    """The peers could not be installed; says why."""


class Peer(Protocol):
    """Something that tells every endpoint of one thing."""

    def announce(self, data: dict[str, Any]) -> tuple[float, float]:
        """Returns when the news was there to be sent, and when all of it was enqueued (Unix times)."""


class Bare:
    """One message an endpoint, put into Redis one by one."""

    def __init__(self, urls: Sequence[str]) -> None:
        from bench.bare_actor import post

        self._urls, self._post = urls, post

    def announce(self, data: dict[str, Any]) -> tuple[float, float]:
        body = json.dumps(data)
        begin = time.time()
        for url in self._urls:
            self._post.send(url, body)
        return begin, time.time()


class Django:
    """One saved row."""

    def __init__(self, announcer: Dialogue, urls: Sequence[str]) -> None:
        self._announcer = announcer
        announcer.ask(urls)

    def announce(self, data: dict[str, Any]) -> tuple[float, float]:
        committed, enqueued = self._announcer.ask(data)
        return committed, enqueued


@contextlib.contextmanager
def bare(
    servers: Engines, urls: Sequence[str], env: Mapping[str, str], logs: Path, size: tuple[int, int]
) -> Iterator[Bare]:
    """The actor and its worker while the context lasts."""
    processes, threads = size
    redis_url = f"{servers.redis_url}?db=1"
    os.environ["BARE_REDIS_URL"] = redis_url
    command = [sys.executable, "-m", "dramatiq", "bench.bare_actor:broker"]
    command += ["--processes", str(processes), "--threads", str(threads)]
    # As ours: by default an idle worker sleeps up to half a second before it sees a new message.
    theirs = dict(env) | {"BARE_REDIS_URL": redis_url, "dramatiq_worker_timeout": "50"}
    with _running(command, theirs, logs / "bare.log"):
        yield Bare(urls)


@contextlib.contextmanager
def django(
    servers: Engines, urls: Sequence[str], env: Mapping[str, str], logs: Path, size: tuple[int, int]
) -> Iterator[Django]:
    """The Django project and its Celery worker while the context lasts.

    :raises NotInstalled: it is not here, and cannot be fetched.
    """
    python = _installed(logs / "install.log")
    assert servers.postgres is not None
    _make_database(servers)
    socket = servers.redis_url.removeprefix("unix://")
    theirs = dict(env) | {
        "PEER_DATABASE": _DATABASE,
        "PEER_DATABASE_HOST": str(servers.postgres.sockets),
        "PEER_REDIS_URL": f"redis+socket://{socket}?virtual_host=2",
    }
    announcer = [str(python), "-m", "bench.django_peer.announcer"]
    with contextlib.ExitStack() as stack:
        talk = stack.enter_context(dialogue(announcer, logs / "announcer.log", theirs))
        peer = Django(talk, urls)
        for number in range(size[0]):
            stack.enter_context(_running(_celery(python, number, size), theirs, logs / f"celery-{number}.log"))
        yield peer


PEERS: Mapping[
    str, Callable[[Engines, Sequence[str], Mapping[str, str], Path, tuple[int, int]], AbstractContextManager[Peer]]
] = {"bare": bare, "django": django}
"""How each is started: on which engines, to tell which endpoints, with what environment, where its logs go, and of how
many processes and threads it may be.
"""


def _celery(python: Path, number: int, size: tuple[int, int]) -> list[str]:
    # Its default, a pool of single-threaded processes, took a third more of the processors' time per delivery.
    command = [str(python), "-m", "celery", "-A", "bench.django_peer.worker", "worker", "--loglevel", "WARNING"]
    return [*command, "--hostname", f"{number}@bench", "--pool", "threads", "--concurrency", str(size[1])]


@contextlib.contextmanager
def _running(command: Sequence[str], env: Mapping[str, str], log: Path) -> Iterator[None]:
    with children.open_log(log) as output:
        process = children.spawn(command, env=env, output=output, death_signal=signal.SIGTERM, cwd=TOP)
    try:
        yield
    finally:
        children.stop(process, signal.SIGTERM, 5)


def _make_database(servers: Engines) -> None:
    assert servers.postgres is not None
    connection = psycopg2.connect(host=str(servers.postgres.sockets), user="postgres", dbname="postgres")
    try:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {_DATABASE}")
    finally:
        connection.close()


def _installed(log: Path) -> Path:
    """The Python that has what bench/peers.lock names; installed now if it is not."""
    python = _VENV / "bin" / "python"
    wanted = hashlib.sha256(_LOCK.read_bytes()).hexdigest()
    with contextlib.suppress(FileNotFoundError):
        if _STAMP.read_text() == wanted:
            return python
    print(f"installing into {_VENV.name} (once per change of bench/peers.lock)")
    venv.create(_VENV, clear=True, with_pip=True, symlinks=True)
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
    with children.open_log(log) as output:
        done = subprocess.run([*command, "-r", str(_LOCK)], stdout=output, stderr=output, check=False)
    if done.returncode:
        raise NotInstalled(children.last_lines(log, 3))
    # Written last: an install that was interrupted leaves no stamp.
    _STAMP.write_text(wanted)
    return python
