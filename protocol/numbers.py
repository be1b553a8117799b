"""From a draw seed to six winning numbers, and from a ticket to what it wins.

The rule: each number is uniform over its whole range. A candidate that would favour low numbers is thrown
away, never folded back.

Implements docs/protocol.md, section 4 (numbers).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from hashlib import sha256
from itertools import count

from protocol.canonical import DOMAIN, is_hash
from protocol.errors import Invalid
from protocol.prizes import JACKPOT, TIERS

LABELS: tuple[str, ...] = (JACKPOT, *(tier.label for tier in TIERS))
"""The six labels in tier order: jackpot, bonus1 to bonus5."""

_SPACE = 1 << 256


@dataclass(frozen=True)
class Numbers:
    """The six winning numbers; iterating or indexing goes by tier, 0 being the jackpot."""

    jackpot: int
    bonus1: int
    bonus2: int
    bonus3: int
    bonus4: int
    bonus5: int

    def __iter__(self) -> Iterator[int]:
        return iter(astuple(self))

    def __getitem__(self, tier: int) -> int:
        return tuple(self)[tier]

    def __len__(self) -> int:
        return len(LABELS)

    def as_hashed(self) -> dict[str, int]:
        """The object published and hashed: keys jackpotNumber, bonus1 to bonus5."""
        jackpot, *bonuses = self
        return {"jackpotNumber": jackpot, **dict(zip(LABELS[1:], bonuses, strict=True))}


def acceptance_limit(range_: int) -> int:
    """The largest multiple of `range_` up to 2^256: candidates from it on are thrown away (docs/protocol.md,
    section 4).
    """
    return _SPACE - _SPACE % range_


def number_stream(seed: bytes, label: str, range_: int) -> Iterator[int]:
    """Numbers of 1 to `range_`, uniform and endless, of the 32-byte `seed` and `label`; a draw takes the
    first.
    """
    limit = acceptance_limit(range_)
    return (1 + candidate % range_ for candidate in _candidates(seed, label, range_) if candidate < limit)


def _candidates(seed: bytes, label: str, range_: int) -> Iterator[int]:
    """HMAC-SHA256(seed, `D/draw|label|range|c`) as big-endian integers, for c = 0, 1, …

    HMAC is spelled out as its two hashes, so that what never changes is hashed once: a third of the time.
    """
    block = seed.ljust(64, b"\0")
    inner = sha256(bytes(byte ^ 0x36 for byte in block) + f"{DOMAIN}/draw|{label}|{range_}|".encode("ascii"))
    outer = sha256(bytes(byte ^ 0x5C for byte in block))
    for counter in count():
        message = inner.copy()
        message.update(b"%d" % counter)
        tagged = outer.copy()
        tagged.update(message.digest())
        yield int.from_bytes(tagged.digest(), "big")


def draw_numbers(draw_seed_hex: str, ranges: Sequence[int]) -> Numbers:
    """The winning numbers of a draw (docs/protocol.md, section 4).

    `ranges` are the highest numbers of the jackpot and of bonus1 to bonus5. Raises Invalid unless the seed is
    64 lowercase hex digits and there are six ranges of 1 to 2^256.
    """
    if not is_hash(draw_seed_hex):
        raise Invalid("a draw seed is 64 lowercase hex digits")
    if len(ranges) != len(LABELS) or not all(1 <= range_ <= _SPACE for range_ in ranges):
        raise Invalid("a draw needs six ranges, each from 1")
    seed = bytes.fromhex(draw_seed_hex)
    return Numbers(*(next(number_stream(seed, label, range_)) for label, range_ in zip(LABELS, ranges, strict=True)))


def tiers_won(ticket: Sequence[int], numbers: Numbers) -> tuple[int, ...]:
    """The tiers a ticket wins, lowest first: 0 is the jackpot, 1 to 5 the sub-prizes. It may win several at
    once.

    `ticket` is its six numbers in tier order.
    """
    return tuple(tier for tier, (own, drawn) in enumerate(zip(ticket, numbers, strict=True)) if own == drawn)
