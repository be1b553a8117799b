"""What ``flask ops`` prints: tables, facts, JSON, progress.

The one rule kept here: results go to standard output and fit 100 columns; questions and progress go to standard error.
Whatever others wrote is made harmless first: a company's name must not move anybody's cursor.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from protocol.retry import ERROR_CLASSES

WIDEST = 100
NOTHING = "–"
BLANK = " "
MICRO = 1_000_000

STYLES = {
    **dict.fromkeys(ERROR_CLASSES, "red"),
    "failed": "red",
    "damaged": "red",
    "missing": "red",
    "not as sealed": "red",
    "intact": "green",
    "FAILED": "red",
    "suspended": "red",
    "paused": "yellow",
    "open": "red",
    "failing": "yellow",
    "healthy": "green",
    "cancelled": "yellow",
    "pending": "yellow",
    "delivered": "green",
    "approved": "green",
}


class Column:
    """A column of a table. ``right``: for numbers. ``narrowest``: never squeezed below so many characters."""

    def __init__(self, title: str, *, right: bool = False, narrowest: int | None = None) -> None:
        self.title = title
        self.justify: Literal["left", "right"] = "right" if right else "left"
        self.narrowest = narrowest


def plain(text: str) -> str:
    """The text without anything that a terminal would act upon."""
    return "".join(char if char.isprintable() or char == "\n" else "�" for char in text)


def console() -> Console:
    """Standard output, at most 100 columns wide; exactly 100 when it is not a terminal."""
    found = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
    found.width = min(found.width, WIDEST) if found.is_terminal else WIDEST
    return found


def table(columns: Sequence[Column], rows: Iterable[Sequence[object]], empty: str) -> None:
    """Print a table; ``empty`` is said instead of one without rows. A cell may have several lines."""
    drawn = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True, header_style="bold")
    for column in columns:
        drawn.add_column(column.title, justify=column.justify, overflow="fold", min_width=column.narrowest)
    for row in rows:
        drawn.add_row(*(_cell(value) for value in row))
    if drawn.row_count:
        console().print(drawn)
    else:
        click.echo(empty)


def facts(pairs: Iterable[tuple[str, object]]) -> None:
    """Print names and what they are, one a line."""
    drawn = Table(box=None, show_header=False, pad_edge=False)
    drawn.add_column(style="bold", no_wrap=True)
    drawn.add_column(overflow="fold")
    for name, value in pairs:
        drawn.add_row(name, _cell(value))
    console().print(drawn)


def _cell(value: object) -> Text:
    text = NOTHING if value is None or value == "" else plain(str(value))
    return Text(text, style=STYLES.get(text.partition("\n")[0], ""))


def show_json(answer: object) -> None:
    """Print one JSON object, as the admin API answers it: on one line, or laid out for a person on a terminal."""
    click.echo(json.dumps(answer, indent=2 if sys.stdout.isatty() else None))


def older(answer: dict[str, Any]) -> None:
    """Say how to see the next page, if there is one."""
    if answer["nextCursor"]:
        click.echo(f"Older ones: --cursor {answer['nextCursor']}")


def moment(shown: str | None) -> str:
    """A timestamp of ours to the second: ``2026-01-31 20:00:00Z``."""
    return f"{shown[:10]} {shown[11:19]}Z" if shown else NOTHING


def age(seconds: float | None) -> str | None:
    """For how long, in one unit: ``4.2 s``, ``17 min``, ``5 h``."""
    if seconds is None:
        return None
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, hours = seconds / 60, seconds / 3_600
    return f"{minutes:.0f} min" if minutes < 120 else f"{hours:.0f} h"


def usdc(micro: str | int | None, decimals: int = 2) -> str:
    """micro-USDC as USDC, exactly: so many decimals, more only where there are more. With 6 a column lines up."""
    if micro is None:
        return NOTHING
    whole, rest = divmod(abs(int(micro)), MICRO)
    shown = f"{rest:06d}".rstrip("0").ljust(decimals, "0")
    return f"{'-' if int(micro) < 0 else ''}{whole:,}.{shown}"


def on_terminal() -> bool:
    """Whether there is a person to ask: input and standard error are both a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


@contextmanager
def progress(what: str, total: int) -> Iterator[Any]:
    """A progress bar on standard error, on a terminal only. Yields what is to be called with every number done."""
    bar = Progress(
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
    )
    with bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)
