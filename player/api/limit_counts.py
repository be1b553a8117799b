"""The counts of the rate limits in Redis: counting and reading a window in one round trip.

The one rule kept here: Redis is asked once a request. What the headers tell is what counting answered, so they agree
with the decision, and once a request is counted there is no second question that could fail.
"""

import threading
import time
from typing import Any

from limits.storage import RedisStorage

COUNTING = "node+"
"""Put before the address of Redis, it names this storage to the limiter."""

_COUNT = """
local count = redis.call('INCRBY', KEYS[1], ARGV[1])
local left = redis.call('PTTL', KEYS[1])
if left < 0 then
    left = tonumber(ARGV[2])
    redis.call('PEXPIRE', KEYS[1], left)
end
return {count, left}
"""


class CountingRedis(RedisStorage):
    """``limits``' Redis storage for fixed windows, under addresses like ``node+redis://…``."""

    STORAGE_SCHEME = [COUNTING + scheme for scheme in ("redis", "rediss", "unix")]

    def __init__(self, uri: str, **options: Any) -> None:
        super().__init__(uri.removeprefix(COUNTING), **options)
        self._count = self.storage.register_script(_COUNT)
        # A request is counted and answered by one thread.
        self._last = threading.local()

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Count, and remember what the window looks like.

        A window ends on a whole second. So every answer of a window names the same end, whatever the way to Redis took,
        and by this machine's clock, whatever that of Redis says.
        """
        now = time.time()
        whole = max(1, int((int(now) + expiry - now) * 1000))
        count, left = self._count([self.prefixed_key(key)], [amount, whole])
        self._last.window = (key, int(count), round(now + left / 1000))
        return int(count)

    def get(self, key: str) -> int:
        """The count as this thread left it."""
        return self._window(key)[0]

    def get_expiry(self, key: str) -> float:
        """The Unix time at which the window ends."""
        return self._window(key)[1]

    def _window(self, key: str) -> tuple[int, float]:
        last, count, end = getattr(self._last, "window", ("", 0, 0))
        # Another key: this request was counted in memory, and Redis came back before it was answered.
        return (count, end) if last == key else (0, time.time())
