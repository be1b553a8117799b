"""``flask ops rounds``: opened, watched and ended from a prompt."""

from __future__ import annotations

from collections.abc import Callable

from protocol.lifecycle import State
from tasks.rounds import advance_round
from tests.app.conftest import Caller
from tests.app.ops import Shell
from tests.factories import a_round, rows, some_operators, take_part, take_to, the_round

OPEN = ("rounds", "open", "--seal-at", "1h", "--sealing-deadline", "2h", "--escrow-deadline", "3h", "--draw", "4h")


def test_a_round_is_opened_and_shown_as_the_api_shows_it(shell: Shell, admin: Callable[..., Caller]) -> None:
    some_operators(2)
    opened = shell.json(*OPEN, "--operator", "op_b", "--as", "nina")
    assert opened == admin().get("/api/admin/rounds/1").get_json() == shell.json("rounds", "show", "1")
    assert opened["operatorIds"] == ["op_b"]
    assert "op_a, op_b" in shell.run(*OPEN).stdout
    assert rows("SELECT actor, action FROM audit_log")[0] == ("nina (command line)", "round.open")


def test_deadlines_and_guests_that_cannot_be_are_refused(shell: Shell) -> None:
    assert "There is no active operator" in shell.refused(*OPEN, ends=2)
    some_operators(1)
    assert "sealingDeadline: Before sealAt." in shell.refused(*OPEN[:5], "30m", *OPEN[6:], ends=2)
    assert "op_x" in shell.refused(*OPEN, "--operator", "op_x", ends=2)
    assert rows("SELECT count(*) FROM rounds") == [(0,)]


def test_rounds_are_listed_newest_first(shell: Shell) -> None:
    operators = some_operators(2)
    first = a_round(operators)
    take_part(first, operators)
    take_to(first, State.DRAWN)
    a_round(operators)
    lines = [line.split()[:3] for line in shell.run("rounds", "list").stdout.splitlines()]
    assert next(line for line in lines if line and line[0].isdigit()) == ["2", "OPEN", "0"]
    assert ["1", "DRAWN", "60"] in lines
    assert shell.json("rounds", "list", "--limit", "1", "--offset", "1")["rounds"][0]["id"] == 1
    shown = shell.run("rounds", "show", "1").stdout
    assert "matching_complete" in shown
    assert "60 at 3.00 USDC" in shown


def test_a_round_is_failed_by_a_worker_on_request(shell: Shell) -> None:
    round_id = a_round(some_operators(1))
    command = ("rounds", "fail", str(round_id), "--reason", "wrong prices", "--as", "nina")
    assert "--yes" in shell.refused(*command, ends=2)
    assert the_round(round_id).abort_reason is None
    assert "will be failed" in shell.run(*command, "--yes").stdout
    advance_round(round_id)
    assert the_round(round_id).state is State.FAILED
    assert "wrong prices" in shell.run("rounds", "show", str(round_id)).stdout
    assert "cannot be failed any more" in shell.refused(*command, "--yes")
    assert "no such round" in shell.refused("rounds", "fail", "7", "--reason", "x", "--yes")
    assert "no such round" in shell.refused("rounds", "show", "7")
