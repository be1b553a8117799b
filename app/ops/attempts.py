"""The attempts at a delivery, for eyes at three in the morning: when, how long, what came of it, and why.

The one rule kept here: what is the same in every attempt is said once, so that what differs is seen.
"""

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from app.ops.screen import Column, moment, table

COLUMNS = (
    Column("#", right=True),
    Column("started", narrowest=20),
    Column("took", right=True),
    Column("outcome", narrowest=9),
    Column("why, and where the time went"),
)


def timeline(attempts: Sequence[dict[str, Any]]) -> None:
    """Print the attempts (as the admin API answers them), first to last; a URL only where it changed."""
    gaps = [None, *(_seconds_between(before, after) for before, after in pairwise(attempts))]
    changed = [None, *(after["url"] if before["url"] != after["url"] else None for before, after in pairwise(attempts))]
    table(
        COLUMNS,
        (_row(one, gap, url) for one, gap, url in zip(attempts, gaps, changed, strict=False)),
        "Nobody has tried yet.",
    )


def _row(one: dict[str, Any], gap: float | None, url: str | None) -> list[object]:
    failed = one["errorClass"]
    called = one["peer"] and f"{one['peer']}{', reused' if one['connectionReused'] else ''}"
    more = (one["detail"], _phases(one["phasesMs"]), called, url and f"now to {url}")
    return [
        one["number"],
        moment(one["startedAt"]) + (f"\n{_lasting(gap)} later" if gap is not None else ""),
        _lasting(one["durationMs"] / 1_000),
        f"{failed or 'delivered'}\n{one['statusCode'] or ''}",
        "\n".join(line for line in more if line),
    ]


def _phases(phases: dict[str, float | None] | None) -> str:
    """What took a millisecond or more."""
    took = ", ".join(f"{name} {ms:,.0f}" for name, ms in (phases or {}).items() if ms is not None and ms >= 1)
    return f"{took} ms" if took else ""


def _seconds_between(before: dict[str, Any], after: dict[str, Any]) -> float:
    started, again = (datetime.fromisoformat(one["startedAt"]) for one in (before, after))
    return (again - started).total_seconds()


def _lasting(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1_000:.0f} ms"
    if seconds < 100:
        return f"{seconds:.1f} s"
    if seconds < 1_000:
        return f"{seconds:.0f} s"
    hours = seconds / 3_600
    return f"{60 * hours:.0f} min" if hours < 2 else f"{hours:.0f} h" if hours < 48 else f"{hours / 24:.0f} days"
