"""One APScheduler job that rings for due rows, five times a second.

The one rule kept here: the clock holds no state. Stopped, doubled or killed, all that was due is still due in its row.
"""

import logging
import signal
from types import FrameType

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.blocking import BlockingScheduler
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from models import tables
from models.session import transaction
from models.settings import settings
from tasks import logs
from tasks.due import ring_due
from tasks.opening import cron_trigger, plan_schedule

__all__ = ["run", "tables"]

TICK_SECONDS = 0.2

log = logging.getLogger(__name__)


class Ticking:
    """The job: rings for whatever is due. An engine that is away now will be back at some later tick.

    Says once that it cannot, and once that it can again, not five times a second.
    """

    def __init__(self) -> None:
        self._failing = False

    def tick(self) -> None:
        """Ring for whatever is due."""
        try:
            ring_due()
        except (SQLAlchemyError, RedisError) as error:
            if not self._failing:
                log.warning("cannot ring for due rows", extra={"error": type(error).__name__})
            self._failing = True
        else:
            if self._failing:
                log.warning("ringing for due rows again")
            self._failing = False


def run() -> None:
    """Run until SIGTERM or Ctrl-C."""
    logs.configure(settings().log_level)
    if settings().round_schedule is not None:
        cron_trigger(settings().round_schedule or "")
    scheduler = BlockingScheduler(executors={"default": ThreadPoolExecutor(1)}, timezone="UTC")
    scheduler.add_job(_plan_until_done, args=[scheduler], id="plan")
    scheduler.add_job(
        Ticking().tick,
        "interval",
        seconds=TICK_SECONDS,
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


def _plan_until_done(scheduler: BlockingScheduler) -> None:
    """Write down when rounds open by themselves; again with the next second while the database is away."""
    try:
        with transaction() as session:
            plan_schedule(session)
    except SQLAlchemyError as error:
        log.warning("schedule not planned yet", extra={"error": type(error).__name__})
        scheduler.add_job(_plan_until_done, "interval", seconds=1, args=[scheduler], id="plan", replace_existing=True)
    else:
        if scheduler.get_job("plan"):
            scheduler.remove_job("plan")
