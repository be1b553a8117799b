"""A data folder has one owner at a time, and killed runs leave no litter."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import pytest

from deploy.data_folder import hold, throw_away
from deploy.failure import AlreadyRunning


def test_a_held_folder_names_its_holder(tmp_path: Path) -> None:
    with (
        hold(tmp_path / "data"),
        pytest.raises(AlreadyRunning, match=rf"already running on .*data \(pid {os.getpid()}\)"),
        hold(tmp_path / "data"),
    ):
        pass
    with hold(tmp_path / "data"):
        pass


def test_what_a_killed_run_left_behind_is_removed_but_not_what_is_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/tmp")  # noqa: S108  (tmp_path is too long for sockets)
    with throw_away() as used:
        abandoned = Path(tempfile.mkdtemp(prefix="lottery-"))
        (abandoned / "lock").touch()
        for path in used.path, abandoned:
            os.utime(path, (time.time() - 3600,) * 2)
        with throw_away():
            assert not abandoned.exists()
            assert used.path.exists()
    assert not used.path.exists()
