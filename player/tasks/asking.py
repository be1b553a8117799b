"""The worker's client of the coordinator, and how long to wait when it cannot be had.

The one rule kept here: an attempt is shorter than the lease of the row it is for. Patience beyond that is the row's.
"""

from datetime import datetime, timedelta
from functools import lru_cache

from player.coordinator import Coordinator
from player.settings import settings

_FIRST, _LONGEST = 0.5, 15.0


@lru_cache(maxsize=1)
def coordinator() -> Coordinator:
    """The client that this process's threads share."""
    return Coordinator(settings().coordinator_url, settings().operator_api_key, timeout=20.0, attempts=2, patience=40.0)


def again_at(now: datetime, attempts: int, deadline: datetime) -> datetime:
    """When to try again after so many failures in a row (from 1): later each time, but several times before
    ``deadline`` if that is still to come.
    """
    pause = min(_LONGEST, _FIRST * 2.0 ** min(attempts - 1, 10))
    left = (deadline - now).total_seconds()
    return now + timedelta(seconds=max(0.2, min(pause, left / 4)) if left > 0 else pause)
