"""The script beside a running program: it brings the program's settings, for its owner alone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from deploy.beside import write_command
from deploy.processes import Running


def test_a_command_has_the_settings_of_what_runs_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    nothing: Any = None
    env = {**os.environ, "JWT_KEYS": "k1:it's a $SECRET", "PORT": "8000"}
    file = tmp_path / "of it"
    write_command(
        file, Running("http://127.0.0.1:8000", env, nothing, nothing), ["sh", "-c", 'echo "$JWT_KEYS,$1,$PORT"', "-"]
    )
    own = {name: value for name, value in os.environ.items() if name != "PORT"}
    done = subprocess.run([file, "a word"], env=own, capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "k1:it's a $SECRET,a word,\n"
    assert file.stat().st_mode & 0o777 == 0o700
