"""A command line beside a program that runs here: a script in its data folder that brings all of its settings.

One rule: it is for us alone, like the file of secrets beside it, and whoever calls it keeps their own environment.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from deploy.keys import replace_private
from deploy.processes import Running
from deploy.procfile import TOP

# What only the servers are told.
_OF_SERVERS = {"HOST", "PORT", "PYTHONUNBUFFERED"}


def write_command(file: Path, running: Running, command: Sequence[str]) -> None:
    """Make `file` a script that does `command`, and what is written behind it, beside `running`."""
    given = {
        name: value for name, value in running.env.items() if name not in _OF_SERVERS and os.environ.get(name) != value
    }
    # Exported, not given to env(1): the words of a command are for all of the machine to see.
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in given.items())
    text = f'#!/bin/sh\n{exports}cd {shlex.quote(str(TOP))} && exec {shlex.join(command)} "$@"\n'
    replace_private(file, text, 0o700)
