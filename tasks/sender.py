"""The sender of a worker process: leases due deliveries, sends them side by side, writes down what came of them.

The one rule kept here: a slow receiver costs a coroutine and nothing else. No thread, no database connection and no
other receiver waits for it; only the slots of its lane are counted.

Decision 7 says why one event loop a process and not threads.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError

from models.leases import SLOW_CAP, Concluded, Lane, Leased, lease_some
from models.session import transaction
from models.settings import settings
from tasks.attempts import PutOff, Result, attempt
from tasks.conclusions import write_down
from tasks.outbound import Caller, trust
from tasks.resolver import Resolver

log = logging.getLogger(__name__)

T = TypeVar("T")

LEASE_MARGIN_SECONDS = 15.0
"""A lease is this much longer than the deadline: time to start, and to write down the result, on a busy machine."""
PROMPT_SECONDS = 3.0
"""A first attempt that takes longer goes on in the slow lane: however many hang at once, the fast one empties."""
BATCH = 250
"""Deliveries leased or concluded in one transaction at the most."""
DATABASE_AWAY_SECONDS = 0.5
UNWRITABLE = "the rest could not be written down"


class Sender:
    """Sends what is due, from ``run`` until ``stop``."""

    def __init__(self) -> None:
        slots = settings().webhook_concurrency
        # The fast lane never waits for the slow one, whatever is in that.
        self._free = {Lane.FAST: slots - slots // 3, Lane.SLOW: slots // 3}
        self._sending: dict[asyncio.Task[None], Lane] = {}
        self._per_operator: Counter[str] = Counter()
        self._results: list[tuple[Lane, Result]] = []
        self._woken = asyncio.Event()
        self._answered = asyncio.Event()
        self._stop_at: float | None = None
        # One thread leases and one concludes; psycopg2 would block the loop.
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="sender-database")

    async def run(self, *, until_idle: bool = False) -> int:
        """Send whatever is due, until stopped, or until nothing is left to lease; returns how many were concluded."""
        self._caller = Caller(Resolver().addresses, trust(settings().webhook_ca_file))
        concluding = asyncio.create_task(self._conclude())
        try:
            while self._stop_at is None:
                full = [await self._lease(lane) for lane in Lane]
                if any(full):
                    continue
                if until_idle and not self._sending and not self._results:
                    break
                await self._woken.wait()
                self._woken.clear()
            await self._drain()
        finally:
            self._answered.set()
            self._stop_at = self._stop_at or 0.0
            concluded = await concluding
            await self._caller.close()
            self._threads.shutdown(wait=False)
        return concluded

    def wake(self) -> None:
        """Look whether anything is due. Called on the loop."""
        self._woken.set()

    def stop(self, seconds: float) -> None:
        """Lease nothing more; what is not answered in so many seconds is given back. Called on the loop."""
        self._stop_at = time.monotonic() + seconds
        self._woken.set()

    async def _lease(self, lane: Lane) -> bool:
        """Lease and begin to send as much of a lane as there are slots for; whether there may be more."""
        most = min(BATCH, self._free[lane])
        if most <= 0:
            return False
        asked = time.monotonic()
        try:
            leased = await self._in_thread(_lease_some, lane, most)
        except SQLAlchemyError as error:
            log.warning("cannot lease deliveries", extra={"error": type(error).__name__})
            return False  # The scheduler's next bell is the next try.
        for each in leased:
            self._free[lane] -= 1
            self._per_operator[each.operator_id] += 1
            task = asyncio.create_task(self._send(each, asked))
            self._sending[task] = lane
            task.add_done_callback(self._sending.pop)
            if lane is Lane.FAST:
                asyncio.get_running_loop().call_later(PROMPT_SECONDS, self._change_lane, task)
        return len(leased) == most

    def _change_lane(self, task: asyncio.Task[None]) -> None:
        """Let an attempt that is still out after its time count in the slow lane, even beyond that one's slots."""
        if task in self._sending and not task.done():
            self._sending[task] = Lane.SLOW
            self._free[Lane.SLOW] -= 1
            self._free[Lane.FAST] += 1
            self._woken.set()

    async def _send(self, leased: Leased, asked: float) -> None:
        result: Result
        try:
            if time.monotonic() - asked > LEASE_MARGIN_SECONDS / 2:
                # The lease could end before the attempt does, and another would begin beside it.
                result = PutOff(leased, 1.0, "no time was left to begin")
            else:
                result = await attempt(self._caller, leased)
        except asyncio.CancelledError:
            result = PutOff(leased, 0.0, "the worker was stopped")
        except Exception:
            # A mistake of ours must not cost the operator an attempt, nor the others theirs.
            log.exception("attempt went wrong", extra={"delivery": str(leased.id)})
            result = PutOff(leased, 60.0, "a mistake of the coordinator")
        task = asyncio.current_task()
        assert task is not None
        self._results.append((self._sending[task], result))
        self._answered.set()

    async def _conclude(self) -> int:
        """Write down results in batches: while one batch is being written, the next one gathers."""
        concluded = 0
        while True:
            await self._answered.wait()
            self._answered.clear()
            while self._results:
                batch = self._results[:BATCH]
                try:
                    concluded += await self._write([result for _, result in batch])
                except SQLAlchemyError as error:
                    log.warning("cannot write down attempts", extra={"error": type(error).__name__})
                    if self._over():
                        return concluded  # Their leases end, and they are sent once more under the same id.
                    await asyncio.sleep(DATABASE_AWAY_SECONDS)
                    continue
                del self._results[: len(batch)]
                self._give_back_slots(batch)
            if self._stop_at is not None and not self._sending:
                return concluded

    async def _write(self, results: list[Result]) -> int:
        """Write down a batch; if something in it cannot be written, the others do not wait for that.

        :raises SQLAlchemyError: the database is away.
        """
        try:
            return await self._in_thread(write_down, results)
        except DBAPIError as error:
            if error.connection_invalidated or isinstance(error, (OperationalError, InterfaceError)):
                raise
            if len(results) > 1:
                return sum([await self._write([result]) for result in results])
            # What counts is that it was sent. If not even that can be written, its lease ends and it is sent again.
            about = {"delivery": str(results[0].leased.id)}
            if isinstance(results[0], Concluded) and results[0].detail != UNWRITABLE:
                log.exception("what came of an attempt cannot be written", extra=about)
                return await self._write([replace(results[0], response_body=None, peer=None, detail=UNWRITABLE)])
            log.exception("that an attempt was made cannot be written", extra=about)
            return 0

    def _give_back_slots(self, batch: list[tuple[Lane, Result]]) -> None:
        for lane, result in batch:
            operator_id = result.leased.operator_id
            # Somebody may have been waiting for this: an endpoint that had all it may have, or a slot.
            if self._free[lane] <= 0 or lane is Lane.SLOW or self._per_operator[operator_id] >= SLOW_CAP:
                self._woken.set()
            self._free[lane] += 1
            self._per_operator[operator_id] -= 1
            if not self._per_operator[operator_id]:
                del self._per_operator[operator_id]
        if not self._sending:
            self._woken.set()

    async def _drain(self) -> None:
        """Wait for what is out, and call it off at the end."""
        if self._sending and self._stop_at is not None:
            await asyncio.wait(self._sending, timeout=max(0.0, self._stop_at - time.monotonic()))
        out = list(self._sending)
        for task in out:
            task.cancel()
        if out:
            await asyncio.wait(out)

    def _over(self) -> bool:
        return self._stop_at is not None and time.monotonic() > self._stop_at

    async def _in_thread(self, function: Callable[..., T], *args: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *args)


def _lease_some(lane: Lane, most: int) -> list[Leased]:
    with transaction() as session:
        return lease_some(session, lane, most, settings().webhook_timeout_seconds + LEASE_MARGIN_SECONDS)


def deliver_due() -> int:
    """Send everything that is due now, here, and wait for it; returns how many attempts were concluded."""
    return asyncio.run(Sender().run(until_idle=True))
