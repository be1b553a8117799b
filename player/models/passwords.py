"""Passwords: how they are hashed (argon2id) and which are accepted.

The one rule kept here: nobody makes us hash more than MOST_AT_ONCE passwords at a time, nor one that is longer than
LONGEST: a hash costs 19 MiB and some 30 ms on purpose. No session to the database is open meanwhile.
"""

import os
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import BoundedSemaphore

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from protocol.errors import Invalid, Unavailable

SHORTEST = 10
LONGEST = 128
"""Characters, as they are sent."""
MOST_AT_ONCE = max(2, os.cpu_count() or 1)
"""Passwords hashed at a time by one process; others wait their turn, WAIT_SECONDS at the most."""
WAIT_SECONDS = 20.0

# OWASP's figures for a server that many log in to.
_HASHER = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
_TURNS = BoundedSemaphore(MOST_AT_ONCE)


def hash_password(password: str, email: str) -> str:
    """What is stored of a new password.

    :raises Invalid: too short, too long, or the e-mail address itself; code ``weak_password``.
    :raises Unavailable: too many passwords are being hashed.
    """
    if not SHORTEST <= len(password) <= LONGEST or not password.strip():
        raise Invalid(f"a password has {SHORTEST} to {LONGEST} characters", code="weak_password")
    if password.strip().lower() == email.lower():
        raise Invalid("the password must not be the e-mail address", code="weak_password")
    with _a_turn():
        return _HASHER.hash(_bytes(password))


def password_matches(stored: str | None, password: str) -> bool:
    """Whether ``password`` is the one that ``stored`` was made of. None (nobody has that address) is never right, and
    takes as long.

    :raises Unavailable: too many passwords are being hashed.
    """
    if len(password) > LONGEST:
        return False
    with _a_turn():
        try:
            _HASHER.verify(stored or _nobodys(), _bytes(password))
        except (VerificationError, InvalidHashError):
            return False
    return stored is not None


def is_outdated(stored: str) -> bool:
    """Whether a hash was made with other costs than today's."""
    return _HASHER.check_needs_rehash(stored)


def _bytes(password: str) -> bytes:
    # Two keyboards may write one letter as one code point or as two.
    return unicodedata.normalize("NFKC", password).encode()


@lru_cache(maxsize=1)
def _nobodys() -> str:
    return _HASHER.hash(os.urandom(16))


@contextmanager
def _a_turn() -> Iterator[None]:
    if not _TURNS.acquire(timeout=WAIT_SECONDS):
        raise Unavailable("too many are logging in; try again shortly")
    try:
        yield
    finally:
        _TURNS.release()
