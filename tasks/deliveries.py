"""Webhooks leave from here: a sender beside the threads of every worker process, and the bell that wakes it.

The one rule kept here: a bell says only that something is due. Which delivery goes out next is decided where the
whole picture is, in the statement that leases it.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from dramatiq.middleware import Middleware

from tasks.bell import Bell, answers
from tasks.broker import broker
from tasks.sender import DATABASE_AWAY_SECONDS, Sender

log = logging.getLogger(__name__)

DRAIN_SECONDS = 18.0
"""How long a stopped worker waits for answers; what is still out then is given back without an attempt."""
AGAIN_SECONDS = 1.0


class SenderThread(Middleware):
    """The sender beside a worker's threads: there as long as the worker is."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sender: Sender | None = None
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()

    def after_worker_boot(self, broker: Any, worker: Any) -> None:
        """Start, and look at once: the bells of what came before may have been rung long ago."""
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), name="sender", daemon=True)
        self._thread.start()
        started.wait()
        self.wake()

    def _run(self, started: threading.Event) -> None:
        async def main() -> None:
            self._loop, self._sender = asyncio.get_running_loop(), Sender()
            started.set()
            await self._sender.run()

        while not self._stopping.is_set():
            try:
                asyncio.run(main())
            except Exception:
                # What it had leased is due again when the leases end. The process must not go on without a sender.
                log.exception("the sender broke down and is started again")
                self._stopping.wait(AGAIN_SECONDS)

    def wake(self) -> None:
        """Look whether anything is due. Called from any thread."""
        self._call(lambda sender: sender.wake())

    def before_worker_shutdown(self, broker: Any, worker: Any) -> None:
        """Take no more, while the worker's threads come to their ends."""
        self._stopping.set()
        self._call(lambda sender: sender.stop(DRAIN_SECONDS))

    def after_worker_shutdown(self, broker: Any, worker: Any) -> None:
        """Wait until everything is written down."""
        if self._thread is not None:
            self._thread.join(DRAIN_SECONDS + DATABASE_AWAY_SECONDS)

    def _call(self, what: Callable[[Sender], None]) -> None:
        if self._loop is not None and self._sender is not None:
            with suppress(RuntimeError):  # The loop is over.
                self._loop.call_soon_threadsafe(what, self._sender)


beside = SenderThread()
broker.add_middleware(beside)


@answers(Bell.DELIVERIES)
def deliver() -> None:
    """Wake the sender of this process: something is due."""
    beside.wake()
