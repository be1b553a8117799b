"""``flask ops endpoints``: receivers listed, held up and tried again from a prompt."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from models.deliveries import announce
from models.endpoints import BREAKER_FAILURES, Health, note_health
from models.session import transaction
from models.settings import settings
from tests.app.conftest import Caller
from tests.app.ops import Shell
from tests.factories import rows, some_operators


def test_endpoints_are_listed_as_the_api_lists_them(
    shell: Shell, admin: Callable[..., Caller], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEBHOOK_BREAKER_SECONDS", "600")
    settings.cache_clear()
    operators = some_operators(3)
    with transaction() as session:
        announce(session, "round.sealed", ["op_b"] * 1_200, None, {})
        note_health(session, {"op_b": Health(recovered=False, failures=BREAKER_FAILURES)})
    listed = shell.json("endpoints", "list")["endpoints"]
    known = admin().get("/api/admin/endpoints").get_json()["endpoints"]
    for one in (*listed, *known):
        one.pop("oldestDueSeconds")
    assert listed == known
    assert [one["operatorId"] for one in listed] == operators
    table = shell.run("endpoints", "list", "--state", "open").stdout
    assert "op_b" in table
    assert "1,200" in table
    assert "until" in table
    assert "op_a" not in table
    assert "no such endpoint" in shell.run("endpoints", "list", "--state", "paused").stdout
    first = shell.run("endpoints", "list", "--limit", "2").stdout
    assert "op_c" in shell.run("endpoints", "list", "--cursor", first.split("--cursor ")[1].strip()).stdout


def test_an_endpoint_is_paused_and_resumed_once(shell: Shell) -> None:
    some_operators(1)
    pause = ("endpoints", "pause", "op_a", "--reason", "receiver on fire", "--as", "nina")
    assert "paused" in shell.run(*pause).stdout
    assert "nina (command line): receiver on fire" in shell.refused(*pause)
    resume = ("endpoints", "resume", "op_a", "--reason", "fire is out", "--as", "nina")
    assert shell.json(*resume)["state"] == "healthy"
    assert "neither paused nor held back" in shell.refused(*resume)
    assert "no such operator" in shell.refused("endpoints", "pause", "op_x", "--reason", "x")
    assert rows("SELECT actor, action, reason FROM audit_log ORDER BY id") == [
        ("nina (command line)", "endpoint.pause", "receiver on fire"),
        ("nina (command line)", "endpoint.resume", "fire is out"),
    ]
