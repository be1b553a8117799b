"""`make run-player` before it runs: what it lacks is said in one line, and nothing is left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from deploy.data_folder import DataFolder
from deploy.keys import OF_A_NODE, keys
from deploy.procfile import TOP


def run(folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    own = {"DATA_DIR": str(folder / "data"), "SANDBOX_FILE": str(folder / "sandbox.json"), "OPERATOR_API_KEY": ""}
    done = subprocess.run(
        [sys.executable, "-m", "deploy.run_player"],
        cwd=TOP, env=os.environ | own | environ, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert done.returncode == 1
    assert not (folder / "data").exists()
    return done


def test_without_a_coordinator_it_says_where_a_key_would_come_from(tmp_path: Path) -> None:
    assert run(tmp_path).stderr == (
        "run-player: no API key: set OPERATOR_API_KEY, or start a coordinator first "
        f"(`make run` writes {tmp_path}/sandbox.json)\n"
    )


def test_an_operator_that_the_sandbox_does_not_have_is_named(tmp_path: Path) -> None:
    (tmp_path / "sandbox.json").write_text(json.dumps({"operators": [{"operatorId": "op_1", "apiKey": "sk_1"}]}))
    assert run(tmp_path, OPERATOR="4").stderr == (
        f"run-player: there is no operator 4 in {tmp_path}/sandbox.json: OPERATOR=1, 2 or 3 names one\n"
    )


def test_a_nodes_secrets_are_made_once_and_kept(tmp_path: Path) -> None:
    made = keys(DataFolder(tmp_path), {}, OF_A_NODE)
    assert set(made) == {"JWT_KEYS", "PAYMENT_SECRET"}
    assert keys(DataFolder(tmp_path), {}, OF_A_NODE) == made
