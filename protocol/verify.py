"""The command line that lets anybody recompute a draw: over HTTP from the coordinator, or offline from files.

The rule: it trusts nothing it reads, never holds all tickets in memory, and says the first thing that
differs.

    python -m protocol.verify https://coordinator.example --round 7
    python -m protocol.verify bundle.json --tickets DIR [--previous BUNDLE ...]

Exit 0 and `verified` when all holds, 1 and `not verified: …` at the first difference, 2 and one line when it
could not look (wrong usage, nobody answers, a file cannot be read).

Implements docs/protocol.md, section 10 (proof bundle).
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from protocol.bundle import Bundle, parse_bundle
from protocol.checks import NotVerified
from protocol.errors import Invalid, LotteryError
from protocol.outcome import needs_tickets
from protocol.proof import check_bundle
from protocol.verify_sources import Coordinator, Files, Source

LONGEST_MESSAGE = 2_000
"""Characters shown of a difference."""


class Progress:
    """A bar on a terminal's stderr, nothing elsewhere."""

    def __init__(self, total: int, screen: IO[str]) -> None:
        self._total = total
        self._screen = screen if screen.isatty() else None
        self._done = 0

    def over(self, lines: Iterator[bytes]) -> Iterator[bytes]:
        """The same lines, counted on the way."""
        return lines if self._screen is None else self._counted(lines)

    def clear(self) -> None:
        """Takes the bar away again."""
        if self._screen is not None and self._done:
            self._screen.write("\r\x1b[K")
            self._screen.flush()

    def _counted(self, lines: Iterator[bytes]) -> Iterator[bytes]:
        for line in lines:
            if self._done % 4096 == 0:
                self._draw()
            self._done += 1
            yield line

    def _draw(self) -> None:
        assert self._screen is not None  # for the type checker: only _counted calls
        share = min(1.0, self._done / self._total) if self._total else 1.0
        bar = ("#" * int(30 * share)).ljust(30)
        self._screen.write(f"\rtickets [{bar}] {share:4.0%}  {self._done:,} of {self._total:,}")
        self._screen.flush()


def verify(source: Source, out: IO[str], screen: IO[str]) -> int:
    """Runs every check, printing each; returns the exit code (see the module's docstring)."""
    try:
        raw = source.bundle()
        bundle = _parse(raw)
        print(f"round {bundle.round_id}, {bundle.state}, {bundle.mode}", file=out)
        total = sum(manifest.ticket_count for manifest in bundle.effective) if needs_tickets(bundle) else 0
        progress = Progress(total, screen)
        checks = check_bundle(raw, lambda name: progress.over(source.tickets(name)), source.previous, source.claims)
        try:
            for check in checks:
                progress.clear()
                print(f"✓ {check.name}" if check.proved else f"– {check.name}: taken as stated", file=out)
        finally:
            progress.clear()
    except NotVerified as difference:
        print(f"not verified: {_on_one_line(difference.message)}", file=out)
        return 1
    except LotteryError as problem:
        print(_on_one_line(problem.message), file=screen)
        return 2
    print(_verdict(bundle), file=out)
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Reads the command line, verifies, and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m protocol.verify", description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "source", metavar="URL|BUNDLE", help="the coordinator's address, from https:// on, or a bundle's file"
    )
    parser.add_argument("--round", type=int, metavar="N", help="which round (with a URL)")
    parser.add_argument("--tickets", type=Path, metavar="DIR", help="folder of <operatorId>.ndjson[.gz] (with a file)")
    parser.add_argument(
        "--previous",
        type=Path,
        metavar="BUNDLE",
        action="append",
        default=[],
        help="an earlier round's bundle, to check the chain with; repeatable (with a file)",
    )
    given = parser.parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    source: Source
    if given.source.startswith(("http://", "https://")):
        if given.round is None or given.round < 1:
            parser.error("a URL needs --round N, N from 1")
        if given.tickets or given.previous:
            parser.error("--tickets and --previous go with a file, not with a URL")
        source = Coordinator(given.source, given.round)
    else:
        if given.round is not None:
            parser.error("--round goes with a URL, from https:// or http:// on; a bundle names its round itself")
        source = Files(Path(given.source), given.tickets, given.previous)
    try:
        return verify(source, sys.stdout, sys.stderr)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 2


def _on_one_line(message: str) -> str:
    """The message with nothing in it that moves a terminal's cursor: what was found is whatever somebody wrote there, a
    line of its own that says `verified` included.
    """
    shown = "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in message[:LONGEST_MESSAGE])
    return " ".join(shown.split()) + (" …" if len(message) > LONGEST_MESSAGE else "")


def _verdict(bundle: Bundle) -> str:
    if bundle.state in ("SETTLED", "CLOSED", "FAILED"):
        return "verified"
    return f"verified so far: {bundle.state}"


def _parse(raw: Any) -> Bundle:
    try:
        return parse_bundle(raw)
    except Invalid as problem:
        raise NotVerified("", problem.message) from None


if __name__ == "__main__":
    sys.exit(main())
