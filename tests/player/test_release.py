"""The release steps of coordinator and node: neither touches a database that is the other's."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from deploy.procfile import TOP


def released(*config: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "alembic", *config, "upgrade", "head"]
    return subprocess.run(command, cwd=TOP, env=os.environ, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("whose", "config", "who"), [("database", ["-c", "player/alembic.ini"], "a node"), ("node", [], "the coordinator")]
)
def test_a_database_of_the_other_program_is_refused(
    whose: str, config: list[str], who: str, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue(whose)
    done = released(*config)
    assert done.returncode == 1
    assert done.stderr == f"release: DATABASE_URL names another program's database; {who} needs one of its own\n"
