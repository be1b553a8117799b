"""Who may import what, where that is narrower than the layers: the rules, and the second of two counts."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from deploy.procfile import TOP

ALLOWED = sys.stdlib_module_names | {"rfc8785", "protocol"}


def imported(file: Path) -> Iterator[str]:
    """The modules that a file names."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


def test_protocol_imports_the_standard_library_and_rfc8785_only() -> None:
    # A third party can install and run the rules alone.
    found = {
        name: file.name
        for file in sorted((TOP / "protocol").rglob("*.py"))
        for name in imported(file)
        if name.partition(".")[0] not in ALLOWED
    }
    assert found == {}


def test_the_operators_client_can_be_used_alone() -> None:
    # An operator takes this folder, the rules and requests, and no more of what a coordinator or a node needs.
    found = {
        name.partition(".")[0] for file in (TOP / "player" / "coordinator").glob("*.py") for name in imported(file)
    }
    assert found - sys.stdlib_module_names == {"player", "protocol", "requests", "urllib3"}


def test_the_second_tabulation_shares_nothing_with_the_first() -> None:
    # Of ours it may use how a ticket is hashed, which is published, and nothing that knows rows, numbers or winners.
    outside = {"collections.abc", "hashlib", "typing", "numpy", "numpy.typing", "pyarrow"}
    assert set(imported(TOP / "tasks" / "second_count.py")) == outside | {"protocol.merkle", "protocol.tickets"}
    assert not {"tasks", "models"} & {name.partition(".")[0] for name in imported(TOP / "protocol" / "tickets.py")}
    first = set(imported(TOP / "tasks" / "drawing.py"))
    assert not {"tasks.second_count", "tasks.tabulating", "numpy", "pyarrow", "models.archives"} & first
