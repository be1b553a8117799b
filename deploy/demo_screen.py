"""What the demo shows while it runs: a line for everything done, and on a terminal what is being waited for.

One rule: the lines are the same everywhere. A terminal sees them grow; a file or a pipe gets them plain.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text


class Screen:
    """Standard output, with the seconds since the demo began before every line."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False, soft_wrap=True)
        self._start = time.monotonic()

    def step(self, text: str) -> None:
        """Say what was just done."""
        # As Text: a square bracket in an answer of the coordinator is not markup.
        stamp = f"{time.monotonic() - self._start:6.1f} s  "
        self._console.print(Text.assemble((stamp, "dim"), text))

    def table(self, table: Table) -> None:
        """Show a table, set off by an empty line."""
        self._console.print()
        self._console.print(table, soft_wrap=False)

    def output(self, command: str, text: str) -> None:
        """Show a command and what it wrote."""
        self._console.print(Text(f"\n$ {command}", style="bold"))
        self._console.print(Text(text.rstrip("\n")))

    @contextlib.contextmanager
    def counting(self, what: str, total: int) -> Iterator[Callable[[int], None]]:
        """A bar on a terminal, nothing elsewhere. Call what is yielded with how many more are done."""
        columns = (TextColumn("          {task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, console=self._console, transient=True, disable=not self._console.is_terminal) as bar:
            task = bar.add_task(what, total=total)
            yield lambda done: bar.advance(task, done)

    @contextlib.contextmanager
    def waiting(self) -> Iterator[Callable[[str], None]]:
        """A spinner on a terminal, nothing elsewhere. Call what is yielded with what is waited for."""
        if not self._console.is_terminal:
            yield lambda text: None
            return
        with self._console.status("") as status:
            yield lambda text: status.update(Text(text))


def usd(micro: int) -> str:
    """micro-USDC in dollars; as many digits after the point as it has, two at least: 1500000 → 1.50."""
    fraction = f"{micro % 1_000_000:06d}".rstrip("0").ljust(2, "0")
    return f"{micro // 1_000_000:,}.{fraction}"
