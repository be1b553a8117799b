"""``flask ops deliveries``: found, shown, queued again, and never by accident."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.app.conftest import Caller
from tests.app.ops import Shell
from tests.app.test_admin_deliveries import deliveries
from tests.factories import an_operator, rows, some_operators


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
