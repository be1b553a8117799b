"""How long to wait before a request is sent again, and when to give up: decisions without a clock of their own.

The one rule kept here: whoever waits, waits a random time (full jitter), so that many operators that failed together do
not come back together; and never a shorter one than the coordinator asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

AGAIN = frozenset({429, 500, 502, 503, 504})
"""Statuses after which the same request may succeed."""


@dataclass(frozen=True)
class Patience:
    """`timeout`: seconds for one attempt; `attempts` of them at most; `overall`: seconds for all of it, waits included.

    Before the second attempt it waits up to `first` seconds, then up to twice as long each time, up to `longest`.
    """

    timeout: float = 30.0
    attempts: int = 6
    overall: float = 120.0
    first: float = 0.5
    longest: float = 30.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or min(self.timeout, self.overall) <= 0:
            raise ValueError("an attempt is needed, and time for it")

    def wait(self, attempt: int, asked: float | None, jitter: Callable[[float, float], float]) -> float:
        """Seconds to wait after failed attempt number `attempt` (from 1). `asked`: what the coordinator asked for.

        `jitter(low, high)` is a random number between the two.
        """
        ceiling = min(self.longest, self.first * 2.0 ** min(attempt - 1, 30))
        return max(asked or 0.0, jitter(0.0, ceiling))


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """The seconds that a Retry-After header asks for, in either of its forms; None without one that can be read.

    `now` stands in where the answer does not say (Date) when it was made: a clock that is wrong here does no harm.
    """
    asked = headers.get("Retry-After", "").strip()
    if asked.isascii() and asked.isdigit():
        return float(asked[:9])
    until, made = _date(asked), _date(headers.get("Date", ""))
    return None if until is None else max(0.0, (until - (made or now)).total_seconds())


def _date(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
