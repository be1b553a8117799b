"""Walks back from a round to those before it, over the hashes that bind them.

The rule: a bundle is believed of an earlier round only if the later one carries its hash. A round that failed before
it was sealed carries none: nothing binds what lies behind it.

Implements docs/protocol.md, section 10 (proof bundle).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from protocol.bundle import Bundle
from protocol.checks import same

Earlier = Callable[[int], Bundle | None]
"""Gives an earlier round's bundle, checked, or None when the caller has none to offer."""


def walked_back(bundle: Bundle, earlier: Earlier | None, until: int = 1) -> Iterator[tuple[Bundle, Bundle | None]]:
    """Each round from the bundle's down to the one after `until`, with the one before it; None where none is offered,
    and there it ends.

    Raises NotVerified at the first hash that is not that of the round before.
    """
    later = bundle
    while later.round_id > until:
        before = None if earlier is None else earlier(later.round_id - 1)
        if before is not None and later.previous_round_hash is not None:
            name = "previousRoundHash" if later is bundle else f"previousRoundHash of round {later.round_id}"
            same(name, before.round_hash, later.previous_round_hash)
        yield later, before
        if before is None:
            return
        later = before
