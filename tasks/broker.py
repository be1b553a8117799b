"""The Dramatiq broker: how bells reach the workers.

The one rule kept here: Redis holds nothing that matters. No retries, no delays, no results live in it; a message that
fails is logged and forgotten, because its row is still due and will be rung for again.
"""

import logging
from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.middleware import Middleware, ShutdownNotifications
from redis import Redis

from models.settings import settings

log = logging.getLogger(__name__)

HEARTBEAT_TIMEOUT_MS = 10_000
"""After this long without a sign, a worker's unacknowledged messages are handed to another."""


class LogFailures(Middleware):
    """Says once, with the ids, that an actor failed; the row it worked on stays due."""

    def after_process_message(
        self, broker: Any, message: Any, *, result: object = None, exception: BaseException | None = None
    ) -> None:
        if exception is not None:
            log.error("actor failed", extra={"actor": message.actor_name, "row": list(message.args)})


def make_broker(url: str) -> RedisBroker:
    """A broker on the Redis at ``url``."""
    return RedisBroker(  # type: ignore[no-untyped-call]  # dramatiq leaves its constructor unannotated
        client=Redis.from_url(url, socket_connect_timeout=2, socket_timeout=5, health_check_interval=30),
        middleware=[ShutdownNotifications(), LogFailures()],
        heartbeat_timeout=HEARTBEAT_TIMEOUT_MS,
        # Look for messages of dead workers at every command: by default only one in a thousand does.
        maintenance_chance=1_000_000,
        dead_message_ttl=60_000,
    )


broker = make_broker(settings().redis_url)
dramatiq.set_broker(broker)
