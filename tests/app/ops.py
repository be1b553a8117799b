"""Running ``flask ops`` in a test, and reading what it says."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from click.testing import Result
from flask import Flask


@dataclass
class Shell:
    """Somebody at a prompt without a terminal, as a script is."""

    application: Flask

    def run(self, *words: str, ends: int = 0) -> Result:
        """Run a command that ends with this exit code; what it prints for people fits 100 columns."""
        done = self.application.test_cli_runner().invoke(args=["ops", *words])
        assert done.exit_code == ends, f"{words}: exit {done.exit_code}\n{done.output}"
        assert done.exception is None or isinstance(done.exception, SystemExit)
        assert "--json" in words or all(len(line) <= 100 for line in done.stdout.splitlines())
        return done

    def json(self, *words: str) -> Any:
        """What a command prints with --json."""
        return json.loads(self.run(*words, "--json").stdout)

    def refused(self, *words: str, ends: int = 1) -> str:
        """What a command says that is refused: something, on standard error, and nothing as a result."""
        done = self.run(*words, ends=ends)
        assert done.stdout == ""
        assert "Error: " in done.stderr
        return done.stderr
