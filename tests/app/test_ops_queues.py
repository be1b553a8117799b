"""``flask ops queues``: what waits, paused and resumed from a prompt."""

from __future__ import annotations

from collections.abc import Callable

from models.deliveries import announce
from models.session import transaction
from tests.app.conftest import Caller
from tests.app.ops import Shell
from tests.factories import rows, some_operators


def test_what_waits_is_listed_as_the_api_lists_it(shell: Shell, admin: Callable[..., Caller]) -> None:
    with transaction() as session:
        announce(session, "round.sealed", some_operators(3), None, {})
    listed = shell.json("queues", "list")["queues"]
    known = admin().get("/api/admin/queues").get_json()["queues"]
    for queue in (*listed, *known):
        queue.pop("oldestDueSeconds")
    assert listed == known
    assert [queue["depth"] for queue in listed] == [3, 0]
    line = next(line for line in shell.run("queues", "list").stdout.splitlines() if "deliveries" in line)
    assert line.split()[:3] == ["deliveries", "running", "3"]


def test_a_queue_is_paused_and_resumed_once(shell: Shell) -> None:
    pause = ("queues", "pause", "deliveries", "--reason", "receiver on fire", "--as", "nina")
    assert "paused" in shell.run(*pause).stdout
    assert "nina (command line): receiver on fire" in shell.refused(*pause)
    assert "nina (command line)" in shell.run("queues", "list").stdout
    resume = ("queues", "resume", "deliveries", "--reason", "fire is out", "--as", "nina")
    assert shell.json(*resume)["paused"] is False
    assert "is not paused" in shell.refused(*resume)
    assert rows("SELECT actor, action, reason FROM audit_log ORDER BY id") == [
        ("nina (command line)", "queue.pause", "receiver on fire"),
        ("nina (command line)", "queue.resume", "fire is out"),
    ]


def test_only_queues_there_are(shell: Shell) -> None:
    assert "'deliveries', 'rounds'" in shell.refused("queues", "pause", "lunch", "--reason", "x", ends=2)
