"""No row of the interface without its test, and no test of a row that the table of contents does not know."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contract.contents import CONTENTS, HEADINGS

HERE = Path(__file__).parent
# What names the engines of the run that this test is part of: a run inside of it must not take them for its own.
OURS = ("DATABASE_URL", "REDIS_URL", "TEST_RUN", "PYTEST_XDIST_WORKER")
_NAME = re.compile(r"::test_(?P<heading>\w+?)__(?P<rest>\w+)(?:\[(?P<case>\S+).*\])?$")


def collected(config: pytest.Config, items: list[pytest.Item]) -> list[str]:
    """The ids of all tests of this folder, whichever of them are run now."""
    if {item.path for item in items} >= set(HERE.glob("test_*.py")) and not config.option.keyword:
        return [item.nodeid for item in items if item.path.is_relative_to(HERE)]
    environ = {name: value for name, value in os.environ.items() if name not in OURS}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", str(HERE)],
        cwd=HERE.parent.parent, env=environ, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [line for line in done.stdout.splitlines() if "::" in line]


def row(test_id: str) -> str | None:
    """The row that a test holds; None for one that says more than the tables do."""
    name = _NAME.search(test_id)
    if name is None or name["heading"] not in HEADINGS:
        return None
    return f"{name['heading']}: {name['case'] or name['rest']}"


def test_every_row_has_its_test_and_every_test_its_row(request: pytest.FixtureRequest) -> None:
    held = {found for found in map(row, collected(request.config, request.session.items)) if found}
    assert sorted(CONTENTS - held) == [], "rows that no test is named after"
    assert sorted(held - CONTENTS) == [], "rows that the table of contents does not know"
