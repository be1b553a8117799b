"""The embedded engines: they start anywhere, for anybody, side by side, and never outlive their owner."""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg2
import pytest
import redis

from deploy.data_folder import hold
from deploy.engines import EngineError, Engines, engines
from deploy.procfile import TOP
from tests.polling import family, gone, until

AS_ROOT = os.geteuid() == 0
OWNER = [sys.executable, "-m", "deploy.engines", "--", "sh", "-c", "sleep 1000 & echo ready; wait"]


def query(servers: Engines, statement: str) -> object:
    connection = psycopg2.connect(servers.database_url.replace("+psycopg2", ""))
    try:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchone()[0] if cursor.description else None
    finally:
        connection.close()


@pytest.fixture
def owner() -> Iterator[subprocess.Popen[str]]:
    """A process that owns throw-away engines and runs a command, with a child, that never ends by itself."""
    process = subprocess.Popen(OWNER, cwd=TOP, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    everybody = psutil.Process(process.pid).children(recursive=True)
    yield process
    process.kill()
    process.wait()
    process.stdout.close()
    for child in everybody:
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()


def test_two_pairs_run_side_by_side_and_share_nothing() -> None:
    with engines(environ={}) as one, engines(environ={}) as other:
        for servers, value in (one, 1), (other, 2):
            query(servers, f"CREATE TABLE mine AS SELECT {value} AS value")
            with redis.Redis.from_url(servers.redis_url) as client:
                assert client.dbsize() == 0
                client.set("mine", value)
        assert query(one, "SELECT value FROM mine") == 1
        assert query(other, "SELECT value FROM mine") == 2


def test_text_sorts_by_its_bytes_and_time_is_utc() -> None:
    with engines(environ={}) as servers:
        letters = "SELECT string_agg(x, '' ORDER BY x) FROM (VALUES ('a'), ('Z'), ('é'), ('_')) AS t(x)"
        assert query(servers, letters) == "Z_aé"
        assert query(servers, "SHOW timezone") == "UTC"


def test_nothing_is_left_running_or_lying_about_afterwards() -> None:
    with engines(environ={}) as servers:
        assert servers.postgres is not None
        assert servers.redis is not None
        pids = [servers.postgres.pid, servers.redis.pid, *family(servers.postgres.pid)]
        sockets = servers.postgres.sockets
    assert gone(pids)
    assert not sockets.exists()


def test_a_kept_folder_keeps_its_data(tmp_path: Path) -> None:
    with hold(tmp_path / "data") as folder:
        with engines(folder, durable=True, environ={}) as servers:
            assert query(servers, "SHOW fsync") == "on"
            query(servers, "CREATE TABLE kept AS SELECT 7 AS value")
        with engines(folder, durable=True, environ={}) as servers:
            assert query(servers, "SELECT value FROM kept") == 7


def test_a_killed_postgres_comes_back_with_what_was_committed(tmp_path: Path) -> None:
    with hold(tmp_path / "data") as folder, engines(folder, durable=True, environ={}) as servers:
        assert servers.postgres is not None
        query(servers, "CREATE TABLE kept AS SELECT 7 AS value")
        servers.postgres.kill()
        # As after a reboot: the number in the file belongs to somebody else by now.
        pid_file = servers.postgres.data / "postmaster.pid"
        pid_file.write_text("\n".join([str(os.getppid()), *pid_file.read_text().splitlines()[1:]]))
        servers.postgres.start()
        assert query(servers, "SELECT value FROM kept") == 7


def test_an_interrupted_first_start_is_made_good(tmp_path: Path) -> None:
    half_made = tmp_path / "data" / "postgres.unfinished"
    half_made.mkdir(parents=True)
    (half_made / "PG_VERSION").write_text("18\n")
    with hold(tmp_path / "data") as folder, engines(folder, environ={}) as servers:
        assert query(servers, "SELECT 1") == 1


def test_a_failed_start_shows_the_servers_last_words_and_leaves_nothing(tmp_path: Path) -> None:
    with hold(tmp_path / "data") as folder:
        with engines(folder, environ={}) as servers:
            assert servers.postgres is not None
            configuration = servers.postgres.data / "postgresql.conf"
        configuration.write_text("no_such_setting = 1\n")
        with (
            pytest.raises(EngineError, match=r'did not start:(?s:.*)"no_such_setting"'),
            engines(folder, environ={}),
        ):
            pass
    assert not any("postgres" in child.name() for child in psutil.Process().children())


@pytest.mark.skipif(not AS_ROOT, reason="only root has a home others may not pass through")
def test_root_runs_the_servers_as_nobody_even_below_a_private_folder(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    (private / "secret").write_text("ours")
    with hold(private / "data") as folder, engines(folder, environ={}) as servers:
        assert servers.postgres is not None
        assert servers.redis is not None
        for pid in servers.postgres.pid, servers.redis.pid:
            assert psutil.Process(pid).username() == "nobody"
        assert servers.postgres.data.stat().st_mode & 0o777 == 0o700
    assert private.stat().st_mode & 0o777 == 0o701  # Passable, not readable.
    assert str(private) in caplog.text


@pytest.mark.skipif(not AS_ROOT, reason="only root can become somebody else")
def test_an_ordinary_user_runs_the_servers_as_themselves(tmp_path: Path) -> None:
    daemon = pwd.getpwnam("daemon")
    if not Path(psycopg2.__file__).parent.stat().st_mode & 0o004:
        pytest.skip("installed under umask 077: nobody but root can read it")
    script = f"""
import os
from deploy.data_folder import hold
from deploy.engines import engines
from pathlib import Path
import psutil
with engines(environ={{}}) as servers:
    pass  # Loads every module while we may still read them: this Python can be in root's home.
os.setgroups([]); os.setgid({daemon.pw_gid}); os.setuid({daemon.pw_uid})
with hold(Path("data")) as folder, engines(folder, environ={{}}) as servers:
    print(*(psutil.Process(pid).uids().real for pid in (servers.postgres.pid, servers.redis.pid)))
"""
    # Not below tmp_path, whose parents are root's alone.
    with tempfile.TemporaryDirectory() as home:
        os.chown(home, daemon.pw_uid, daemon.pw_gid)
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=home, env=os.environ | {"PYTHONPATH": str(TOP)}, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.stdout.split() == [str(daemon.pw_uid)] * 2, done.stderr


def test_killing_the_owner_ends_everything_it_started(owner: subprocess.Popen[str]) -> None:
    # The command's own child is not ours to hold; whatever we started ourselves is.
    pids = [child.pid for child in psutil.Process(owner.pid).children(recursive=True) if child.name() != "sleep"]
    assert len(pids) > 3
    owner.kill()
    until(lambda: gone(pids), within=30, what="all children end with their owner")


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_owner_stops_everything_it_started(
    owner: subprocess.Popen[str], signal_number: signal.Signals
) -> None:
    pids = family(owner.pid)
    owner.send_signal(signal_number)
    assert owner.wait(10) == 128 + signal_number
    until(lambda: gone(pids), within=2, what="all children are gone")


def test_the_command_gets_the_urls_and_its_exit_code_is_ours() -> None:
    command = 'case "$DATABASE_URL $REDIS_URL" in postgresql*unix://*) exit 7;; esac'
    outside = {"DATABASE_URL": "postgresql://never.invalid/used", "REDIS_URL": "redis://never.invalid"}
    done = subprocess.run(
        [sys.executable, "-m", "deploy.engines", "--", "sh", "-c", command],
        cwd=TOP, env=os.environ | outside, check=False,
    )  # fmt: skip
    assert done.returncode == 7
