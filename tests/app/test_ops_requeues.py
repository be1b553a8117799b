"""``flask ops deliveries requeue-matching``, ``jobs``, ``watch`` and ``cancel``: many sent again from a prompt."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from models.settings import settings
from tasks.requeueing import requeue_batch
from tests.app.conftest import Caller
from tests.app.ops import Shell
from tests.factories import an_operator, rows, some_operators
from tests.requeues import a_beat, failed, queued, work_off

AGAIN = ("deliveries", "requeue-matching", "--reason", "outage over", "--as", "nina")


@contextmanager
def a_worker() -> Iterator[None]:
    """Somebody who works off every job there is."""
    over = threading.Event()

    def work() -> None:
        while not over.wait(0.02):
            for (job_id,) in rows("SELECT id FROM requeue_jobs WHERE due_at IS NOT NULL"):
                a_beat()
                requeue_batch(job_id)

    working = threading.Thread(target=work)
    working.start()
    try:
        yield
    finally:
        over.set()
        working.join()


def test_many_are_counted_first_and_nothing_is_changed(shell: Shell, admin: Callable[..., Caller]) -> None:
    a, b = some_operators(2)
    failed(1_200, a), failed(2, b, "round.drawn", "dns")
    seen = shell.json(*AGAIN, "--dry-run")
    body = {"reason": "outage over", "dryRun": True}
    assert seen == admin().post("/api/admin/deliveries/requeue", body).get_json()
    table = shell.run(*AGAIN, "--dry-run").stdout
    assert "1,202 failed deliveries fit. Nothing was changed." in table
    for expected in ("op_a", "1,200", "round.drawn", "timeout", "dns"):
        assert expected in table
    assert "2 failed deliveries fit" in shell.run(*AGAIN, "--operator", b, "--dry-run").stdout
    assert rows("SELECT (SELECT count(*) FROM audit_log), (SELECT count(*) FROM requeue_jobs)") == [(0, 0)]


def test_many_are_sent_again_and_it_waits_until_it_is_over(shell: Shell, admin: Callable[..., Caller]) -> None:
    a, b = some_operators(2)
    mine, _ = failed(3, a), failed(2, b)
    with a_worker():
        done = shell.run(*AGAIN, "--operator", a, "--yes")
    assert "finished" in done.stdout
    assert "█" not in done.stderr  # no progress bar where there is no terminal
    assert queued() == set(mine)
    [job] = shell.json("deliveries", "jobs")["requeues"]
    assert job == admin().get(f"/api/admin/requeues/{job['jobId']}").get_json()
    assert (job["matched"], job["requeued"], job["actor"]) == (3, 3, "nina (command line)")
    assert "operator op_a" in shell.run("deliveries", "jobs").stdout
    with a_worker():
        everything = shell.json(*AGAIN, "--all", "--yes")
    assert (everything["matched"], everything["requeued"], everything["state"]) == (2, 2, "finished")
    assert "Nobody" not in shell.run("deliveries", "jobs", "--limit", "1").stdout


def test_begun_without_waiting_it_is_watched_and_cancelled_later(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUEUE_PER_SECOND", "2")
    settings.cache_clear()
    an_operator("a")
    failed(5)
    begun = shell.run(*AGAIN, "--operator", "op_a", "--yes", "--no-wait")
    assert "flask ops deliveries watch 1" in begun.stderr
    assert "running" in begun.stdout
    requeue_batch(1)
    cancelled = ("deliveries", "cancel", "1", "--reason", "wrong one", "--as", "otto")
    assert "otto (command line)" in shell.run(*cancelled).stdout
    assert "cancelled already" in shell.refused(*cancelled)
    assert "cancelled" in shell.run("deliveries", "watch", "1").stdout
    assert shell.json("deliveries", "watch", "1")["requeued"] == 2
    assert "no such re-queue" in shell.refused("deliveries", "watch", "7")
    assert rows("SELECT actor, action, reason FROM audit_log ORDER BY id") == [
        ("nina (command line)", "delivery.requeue_matching", "outage over"),
        ("otto (command line)", "delivery.requeue_cancelled", "wrong one"),
    ]


def test_what_somebody_forgot_to_say_is_asked_for(shell: Shell) -> None:
    an_operator("a")
    failed(2)
    assert "--yes" in shell.refused(*AGAIN, "--operator", "op_a", ends=2)
    assert "--all" in shell.refused(*AGAIN, "--yes", ends=2)
    assert "There is a filter" in shell.refused(*AGAIN, "--yes", "--all", "--operator", "op_a", ends=2)
    assert "No such operator" in shell.refused(*AGAIN, "--yes", "--operator", "op_x", ends=2)
    assert "No such round" in shell.refused(*AGAIN, "--dry-run", "--round", "7", ends=2)
    for job in ("0", "x", "9" * 30):
        shell.refused("deliveries", "watch", job, ends=2)
    assert queued() == set()
    assert rows("SELECT count(*) FROM requeue_jobs") == [(0,)]
    assert "Nobody has sent many again" in shell.run("deliveries", "jobs").stdout


def test_on_a_terminal_it_asks_and_shows_how_far_it_is(shell: Shell) -> None:
    an_operator("a")
    failed(2)
    ended, seen = at_a_terminal(*AGAIN, "--all", typed=b"n\n")
    assert "op_a 2" in seen
    assert "Send 2 failed deliveries again? [y/N]" in seen
    assert (ended, queued()) == (1, set())
    with a_worker():
        ended, seen = at_a_terminal(*AGAIN, "--all", typed=b"y\n")
    assert ended == 0, seen
    assert "2/2" in seen
    assert "finished" in seen


def test_who_stops_watching_is_told_that_it_goes_on(shell: Shell) -> None:
    an_operator("a")
    failed(2)
    ended, seen = at_a_terminal(*AGAIN, "--all", typed=b"y\n", interrupt_at=b"queueing again")
    assert ended == 0, seen
    assert "goes on without you" in seen
    assert "flask ops deliveries watch 1" in seen
    assert "flask ops deliveries cancel 1" in seen
    assert "Traceback" not in seen
    assert rows("SELECT due_at IS NOT NULL, cancelled_at FROM requeue_jobs") == [(True, None)]
    assert sum(work_off(1)) == 2


def at_a_terminal(*words: str, typed: bytes, interrupt_at: bytes | None = None) -> tuple[int, str]:
    """Run a command at a terminal of its own, typing this when it asks, and Ctrl-C when this is seen.

    Returns its exit code, and all that was seen.
    """
    command = [sys.executable, "-m", "flask", "--app", "app", "ops", *words]
    terminal, their_side = pty.openpty()
    environment = os.environ | {"COLUMNS": "80"}
    with subprocess.Popen(command, stdin=their_side, stdout=their_side, stderr=their_side, env=environment) as process:
        os.close(their_side)
        seen, answered, interrupted, deadline = b"", False, False, time.monotonic() + 60
        while time.monotonic() < deadline:
            if not select.select([terminal], [], [], 0.1)[0]:
                continue
            try:
                seen += os.read(terminal, 65_536)
            except OSError:  # how Linux says that nobody is at the other side any more
                break
            if not answered and b"[y/N]" in seen:
                answered = bool(os.write(terminal, typed))
            if not interrupted and interrupt_at is not None and interrupt_at in seen:
                interrupted = True
                process.send_signal(signal.SIGINT)
        else:
            process.kill()
        os.close(terminal)
    return process.returncode, seen.decode()


def test_a_page_of_jobs_says_how_to_see_the_next(shell: Shell) -> None:
    an_operator("a")
    for _ in range(3):
        shell.run(*AGAIN, "--operator", "op_a", "--yes")
    first = shell.run("deliveries", "jobs", "--limit", "2").stdout
    second = shell.run("deliveries", "jobs", "--limit", "2", "--cursor", first.split("--cursor ")[1].strip())
    assert "finished" in second.stdout
    assert "--cursor" not in second.stdout


def test_a_job_is_shown_by_the_names_of_its_filters(shell: Shell) -> None:
    an_operator("a")
    shell.run(*AGAIN, "--operator", "op_a", "--event", "round.drawn", "--error-class", "dns", "--yes")
    assert "operator op_a, event round.drawn, error dns" in " ".join(
        shell.run("deliveries", "watch", "1").stdout.split()
    )
