"""The client's page, taken at its word: its program plays a round, and what it lists is what there is.

The one rule kept here: the program is the page's Python blocks, in order, as they stand.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from deploy.procfile import TOP
from player import coordinator
from player.coordinator import Coordinator
from protocol.lifecycle import State
from tests.docs.pages import blocks
from tests.factories import PRICE, a_round, an_operator, fund, take_to, work
from tests.served import served

PAGE = (TOP / "docs" / "sdk.md").read_text(encoding="utf-8")
TABLES = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
LISTED = {name for cell in TABLES for name in re.findall(r"`(\w+)", cell)}


def program() -> dict[str, Any]:
    """What the page's blocks define, run as one program."""
    space: dict[str, Any] = {}
    for block in blocks(PAGE):
        assert block.language == "python", f"line {block.line}"
        exec(compile("\n" * block.line + block.text, "sdk.md", "exec"), space)  # noqa: S102 - our own page
    return space


@pytest.mark.usefixtures("house")
def test_the_program_on_the_page_plays_a_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from models.credentials import issue_api_key
    from models.session import transaction

    operator_id = an_operator("a", funds=0)
    with transaction() as session:
        monkeypatch.setenv("API_KEY", issue_api_key(session, operator_id))
    monkeypatch.setenv("KEPT", str(tmp_path))
    with served() as url:
        monkeypatch.setenv("BASE_URL", url)
        page = program()
        round_id = a_round([operator_id])
        page["round_opened"](round_id)
        page["round_opened"](round_id)  # as after a crash
        assert page["too_late"](round_id) == "manifest_submitted"
        take_to(round_id, State.SEALED)
        page["round_sealed"](round_id)
        said = capsys.readouterr().out
        assert said.count("100 more on record") == 1
        assert f"send {100 * PRICE} micro-USDC before" in said
        fund(operator_id, 100 * PRICE)
        work(round_id)
        take_to(round_id, State.DRAWN)
        won = page["round_drawn"](round_id)
        assert {win.tier for win in won} >= {5}  # every bonus5 from 1 to 100 was sold
        take_to(round_id, State.SETTLED)
        assert page["round_settled"](round_id).accepted == len(won)
        assert page["round_settled"](round_id).already_claimed == len(won)
        page["coordinator"].close()


def test_the_page_lists_every_method_and_every_error() -> None:
    methods = {name for name in dir(Coordinator) if not name.startswith("_")}
    kinds = {
        name
        for name in coordinator.__all__
        if isinstance(thing := getattr(coordinator, name), type) and issubclass(thing, Exception)
    }
    assert methods | kinds - {"CoordinatorError", "TryLater", "Refused"} == LISTED
    assert {name for name in ("CoordinatorError", "TryLater", "Refused") if f"`{name}`" not in PAGE} == set()
