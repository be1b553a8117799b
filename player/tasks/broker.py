"""The Dramatiq broker, and the bell that calls a worker to a row that is due.

The one rule kept here: Redis holds nothing that matters. A message carries the name of a table's bell and a row's id;
one that is lost, or fails, is sent again by the clock, because the row is still due.
"""

import logging
from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.errors import BrokerError
from dramatiq.middleware import Middleware, ShutdownNotifications
from redis import Redis
from redis.exceptions import RedisError

from player.settings import settings

log = logging.getLogger(__name__)

QUEUE = "node"
OUTSIDE = "outside"
"""Calls to work that waits for a mail server or a payment provider. A round must not wait behind hundreds of those when
one of them hangs, so they are heard only if nothing else is to be done (AFTER_ALL_ELSE)."""
AFTER_ALL_ELSE = 10


class LogFailures(Middleware):
    """Says once, with the ids, that an actor failed; the row it worked on stays due."""

    def after_process_message(
        self, broker: Any, message: Any, *, result: object = None, exception: BaseException | None = None
    ) -> None:
        if exception is not None:
            log.error("actor failed", exc_info=exception, extra={"actor": message.actor_name, "row": message.args})


def make_broker(url: str) -> RedisBroker:
    """A broker on the Redis at ``url``. Looks for messages of dead workers at every command."""
    return RedisBroker(  # type: ignore[no-untyped-call]  # dramatiq leaves its constructor unannotated
        client=Redis.from_url(url, socket_connect_timeout=2, socket_timeout=5, health_check_interval=30),
        middleware=[ShutdownNotifications(), LogFailures()],
        namespace="player",
        heartbeat_timeout=10_000,
        maintenance_chance=1_000_000,
        dead_message_ttl=60_000,
    )


broker = make_broker(settings().redis_url)
dramatiq.set_broker(broker)


def unheard(queue: str) -> int:
    """How many calls wait for a worker."""
    return int(broker.client.llen(f"{broker.namespace}:{queue}"))


def ring(queue: str, actor: str, row_id: str) -> bool:
    """Call a worker to a row; False when Redis does not take the call."""
    message: dramatiq.Message[Any] = dramatiq.Message(
        queue_name=queue, actor_name=actor, args=(row_id,), kwargs={}, options={}
    )
    try:
        broker.enqueue(message)
    except (RedisError, BrokerError) as error:
        log.warning("bell not rung", extra={"actor": actor, "row": row_id, "error": type(error).__name__})
        return False
    return True
