"""Reads the Procfile, the one place that says which processes the coordinator has.

One rule: what a platform runs from it and what we run from it is the same text.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from deploy.failure import StartFailure

TOP = Path(__file__).parent.parent
RELEASE = "release"  # By convention not a process: run once before the others start.


def read_procfile(text: str) -> dict[str, str]:
    """Name → command, in the file's order."""
    commands = {}
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = re.fullmatch(r"\s*([A-Za-z0-9_-]+)\s*:\s*(\S.*?)\s*", line)
        if match is None:
            raise StartFailure(f"Procfile: not 'name: command': {line.strip()}")
        commands[match[1]] = match[2]
    return commands


def argv(command: str) -> list[str]:
    """Through a shell, because a command may name variables; replaced by it, because signals are for it."""
    return ["/bin/sh", "-c", f"exec {command}"]


def search_path() -> str:
    """PATH with the programs installed beside this Python first, as in an activated environment."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
