"""Guessing one player's password from many addresses: slowed down by account, beside the limits by address.

The one rule kept here: nobody can lock a player out. Wherever she has logged in from lately she is always heard, and
from anywhere else as often as a person needs, however many others guess. Whoever asks learns nothing by it: addresses
that nobody has an account with are counted as well.

Counts are in Redis. While it is down nobody is slowed down; the limits by address go on counting in each process.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry
from werkzeug.exceptions import TooManyRequests

from player.api.limits import PATIENCE_SECONDS, network
from player.models.session import transaction
from player.models.sessions import addresses_of
from player.settings import settings
from protocol.errors import Unauthenticated

log = logging.getLogger(__name__)

UNNOTICED = 20
"""Wrong passwords for one account within an hour that change nothing: people mistype."""
HOUR = 3600
TRIES = 3
"""Logins to an account under attack from one network that she is not known to use, in TRIES_SECONDS."""
TRIES_SECONDS = 1800

_COUNT = """
local count = redis.call('INCR', KEYS[1])
if count == 1 then redis.call('EXPIRE', KEYS[1], ARGV[1]) end
return {count, redis.call('TTL', KEYS[1])}
"""


@contextmanager
def one_guess(email: str, address: str | None) -> Iterator[None]:
    """Try a password within this block. ``email`` is as it was sent, ``address`` where it came from; a block that ends
    with ``Unauthenticated`` was a wrong guess.

    :raises TooManyRequests: the account is under attack, and this network has had its tries.
    """
    if not settings().rate_limits:
        yield
        return
    guess = _Guess(email, address)
    guess.let_in()
    try:
        yield
    except Unauthenticated:
        guess.failed()
        raise


@dataclass(frozen=True)
class _Guess:
    email: str
    address: str | None

    def let_in(self) -> None:
        try:
            if int(_redis(settings().redis_url).get(self._failures) or 0) < UNNOTICED or self._is_familiar():
                return
            count, left = _counted(f"{self._failures}:{network(self.address)}", TRIES_SECONDS)
        except RedisError:
            return
        if count > TRIES:
            raise TooManyRequests(retry_after=max(1, left))

    def failed(self) -> None:
        try:
            count, _ = _counted(self._failures, HOUR)
        except RedisError:
            return
        if count == UNNOTICED:
            log.warning("somebody guesses a player's password", extra={"address": self.address})

    @property
    def _failures(self) -> str:
        # Nobody's address has other letters, and the database may take some of those for ours.
        account = self.email.lower() if self.email.isascii() else "nobody"
        return f"guesses:{sha256(account.encode()).hexdigest()}"

    def _is_familiar(self) -> bool:
        with transaction() as session:
            known = addresses_of(session, self.email)
        return network(self.address) in {network(address) for address in known}


def _counted(key: str, seconds: int) -> tuple[int, int]:
    count, left = _redis(settings().redis_url).eval(_COUNT, 1, key, str(seconds))
    return int(count), int(left)


@lru_cache(maxsize=1)
def _redis(url: str) -> Redis:
    return Redis.from_url(
        url,
        socket_connect_timeout=PATIENCE_SECONDS,
        socket_timeout=PATIENCE_SECONDS,
        retry=Retry(NoBackoff(), 0),
    )
