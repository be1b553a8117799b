"""``flask ops deliveries``: found, shown, queued again, and never by accident."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from sqlalchemy import text

from models.session import transaction
from tests.app.conftest import Caller
from tests.app.ops import Shell
from tests.app.test_admin_deliveries import deliveries
from tests.factories import an_operator, rows, some_operators
from tests.polling import until

AGAIN = ("deliveries", "requeue-matching", "--reason", "outage over")


def test_deliveries_are_listed_as_the_api_lists_them(shell: Shell, admin: Callable[..., Caller]) -> None:
    a, b = some_operators(2)
    failed, _ = deliveries(2, a), deliveries(1, b, "delivered", None)
    answer = shell.json("deliveries", "list", "--status", "failed", "--operator", a, "--error-class", "timeout")
    assert answer == admin().get(f"/api/admin/deliveries?status=failed&operatorId={a}&errorClass=timeout").get_json()
    table = shell.run("deliveries", "list", "--status", "failed", "--since", "10m").stdout
    for delivery_id in failed:
        assert delivery_id in table
    assert "timeout" in table
    assert "No delivery fits." in shell.run("deliveries", "list", "--until", "1h").stdout


def test_pages_follow_each_other(shell: Shell) -> None:
    written = deliveries(3, an_operator("a"))
    first = shell.run("deliveries", "list", "--limit", "2").stdout
    cursor = first.split("--cursor ")[1].strip()
    second = shell.run("deliveries", "list", "--limit", "2", "--cursor", cursor).stdout
    assert [one in first for one in written] == [False, True, True]
    assert [one in second for one in written] == [True, False, False]
    assert "--cursor" not in second


def test_one_is_shown_with_its_attempts(shell: Shell, admin: Callable[..., Caller]) -> None:
    [delivery] = deliveries(1, an_operator("a"))
    shown = shell.run("deliveries", "show", delivery).stdout
    assert '{"event":"round.sealed"' in shown
    assert shown.count("http://127.0.0.1:9/hook") == 1  # said once, being the same three times
    assert shown.count("12 ms  timeout") == 3
    assert shell.json("deliveries", "show", delivery) == admin().get(f"/api/admin/deliveries/{delivery}").get_json()
    assert "no such delivery" in shell.refused("deliveries", "show", "x")


def test_one_is_queued_again_once(shell: Shell) -> None:
    [delivery] = deliveries(1, an_operator("a"))
    command = ("deliveries", "requeue", delivery, "--reason", "server is back", "--as", "nina")
    assert "pending" in shell.run(*command).stdout
    assert "only a failed one" in shell.refused(*command)
    assert rows("SELECT actor, action, subject, reason FROM audit_log") == [
        ("nina (command line)", "delivery.requeue", delivery, "server is back")
    ]


def test_many_are_counted_and_then_queued_again(shell: Shell) -> None:
    a, b = some_operators(2)
    deliveries(3, a), deliveries(2, b)
    assert shell.json(*AGAIN, "--dry-run") == {"matched": 5, "requeued": 0, "dryRun": True}
    assert "3 failed deliveries fit. Nothing was changed." in shell.run(*AGAIN, "--operator", a, "--dry-run").stdout
    assert rows("SELECT count(*) FROM audit_log") == [(0,)]
    done = shell.run(*AGAIN, "--operator", a, "--yes")
    assert "3 were queued again" in done.stdout
    assert done.stderr == ""  # no progress bar where there is no terminal
    assert shell.json(*AGAIN, "--yes") == {"matched": 2, "requeued": 2, "dryRun": False}
    assert shell.json(*AGAIN, "--yes") == {"matched": 0, "requeued": 0, "dryRun": False}


def test_without_a_terminal_many_are_not_queued_again_unless_somebody_is_sure(shell: Shell) -> None:
    deliveries(2, an_operator("a"))
    assert "--yes" in shell.refused(*AGAIN, ends=2)
    assert rows("SELECT DISTINCT status FROM deliveries") == [("failed",)]


@pytest.mark.parametrize(
    "words",
    [
        *(("--since", "yesterday"), ("--since", "2026-01-01"), ("--event", "round.lost"), ("--round", "0")),
        *(("--cursor", "x"), ("--limit", "0"), ("--limit", "201"), ("--operator", "a b"), ("--offset", "1")),
    ],
)
def test_what_the_api_refuses_the_command_line_refuses(shell: Shell, words: tuple[str, str]) -> None:
    shell.refused("deliveries", "list", *words, ends=2)


@pytest.mark.parametrize("reason", ["", "  ", "x" * 501])
def test_a_reason_says_something(shell: Shell, reason: str) -> None:
    [delivery] = deliveries(1, an_operator("a"))
    shell.refused("deliveries", "requeue", delivery, "--reason", reason, ends=2)


@pytest.mark.parametrize(("typed", "ends", "status"), [(b"n\n", 1, "failed"), (b"y\n", 0, "pending")])
def test_on_a_terminal_it_asks_and_shows_how_far_it_is(shell: Shell, typed: bytes, ends: int, status: str) -> None:
    deliveries(2, an_operator("a"))
    ended, seen = at_a_terminal(typed, *AGAIN)
    assert "Send 2 failed deliveries again? [y/N]" in seen
    assert ended == ends, seen
    assert ("2/2" in seen) == (ends == 0)
    assert rows("SELECT DISTINCT status FROM deliveries") == [(status,)]


def test_killed_in_the_middle_what_was_done_is_on_record_and_the_rest_is_done_by_the_next(shell: Shell) -> None:
    an_operator("a")
    with transaction() as session:
        session.execute(
            text(
                "INSERT INTO deliveries (id, operator_id, event, body, status, attempts, finished_at) "
                "SELECT gen_random_uuid(), 'op_a', 'round.drawn', '', 'failed', 3, now() FROM generate_series(1, 12000)"
            )
        )
    before = connections()
    command = [sys.executable, "-m", "flask", "--app", "app", "ops", *AGAIN, "--yes"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        until(pending, within=60, what="a first batch")
        process.kill()
    # The server may still be at what the dead process sent last.
    until(lambda: connections() <= before, what="the dead process's connection to end")
    first = pending()
    assert rows("SELECT sum((details->>'requeued')::int) FROM audit_log") == [(first,)]
    assert shell.json(*AGAIN, "--yes") == {"matched": 12_000 - first, "requeued": 12_000 - first, "dryRun": False}
    assert rows("SELECT count(*) FROM deliveries WHERE attempts_before = 3 AND status = 'pending'") == [(12_000,)]
    assert rows("SELECT sum((details->>'requeued')::int) FROM audit_log") == [(12_000,)]


def connections() -> int:
    return int(rows("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")[0][0])


def pending() -> int:
    return int(rows("SELECT count(*) FROM deliveries WHERE status = 'pending'")[0][0])


def at_a_terminal(typed: bytes, *words: str) -> tuple[int, str]:
    """Run a command at a terminal of its own, typing this when it asks; its exit code, and all that was seen."""
    command = [sys.executable, "-m", "flask", "--app", "app", "ops", *words]
    terminal, their_side = pty.openpty()
    with subprocess.Popen(command, stdin=their_side, stdout=their_side, stderr=their_side) as process:
        os.close(their_side)
        seen, answered, deadline = b"", False, time.monotonic() + 60
        while time.monotonic() < deadline:
            if not select.select([terminal], [], [], 0.1)[0]:
                continue
            try:
                seen += os.read(terminal, 65_536)
            except OSError:  # how Linux says that nobody is at the other side any more
                break
            if not answered and b"[y/N]" in seen:
                answered = bool(os.write(terminal, typed))
        os.close(terminal)
    return process.returncode, seen.decode()
