"""The clock process: ``python -m player.clock``.

The one rule kept here: no business rules. It finds rows that are due, every 200 ms, and calls workers to them; any
number of clocks may run.
"""

import logging
import signal
from collections.abc import Callable
from types import FrameType

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.blocking import BlockingScheduler
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from player import logs
from player.models.schema import exit_unless_usable
from player.settings import settings

log = logging.getLogger(__name__)
TICK_SECONDS = 0.2


def tick(ring_due: Callable[[], object]) -> None:
    """One look at the tables. An engine that is away is met again at the next tick."""
    try:
        ring_due()
    except (SQLAlchemyError, RedisError) as error:
        log.warning("tick failed", extra={"error": type(error).__name__})


def main() -> None:
    """Tick until SIGTERM or SIGINT."""
    exit_unless_usable("clock")
    # Imported only now: the broker is made from the settings that were just checked.
    from player.tasks.due import ring_due

    logs.configure(settings().log_level)
    scheduler = BlockingScheduler(executors={"default": ThreadPoolExecutor(1)}, timezone="UTC")
    scheduler.add_job(
        tick,
        "interval",
        seconds=TICK_SECONDS,
        args=[ring_due],
        coalesce=True,
        max_instances=1,
        misfire_grace_time=None,
        id="tick",
    )

    def stop(number: int, frame: FrameType | None) -> None:
        scheduler.shutdown(wait=False)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    scheduler.start()


if __name__ == "__main__":
    main()
