"""Which fields of a proof bundle are stated in which state of its round.

The rule: what a state needs is there, and what cannot be known in it is null. So nobody states a draw and calls it
undrawn, for which no tickets would be asked.

Implements docs/protocol.md, section 10 (proof bundle).
"""

from __future__ import annotations

from protocol.bundle import Bundle
from protocol.checks import NotVerified, absent

_FAILED = ("FAILED",)
_SETTLED = ("SETTLED", "CLOSED")
_DRAWN = ("DRAWN", *_SETTLED)
_EFFECTIVE = ("ESCROWED", *_DRAWN)
_ANCHORED = ("SEALED", *_EFFECTIVE)
_FINISHED = (*_SETTLED, *_FAILED)

_ANCHOR = ("sealed_at", "previous_round_hash", "full_manifest_hash", "chained_anchor_hash")
_STAGES: tuple[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]], ...] = (
    # fields, the states that need them, and those that may have them; a round can fail in any state before DRAWN
    (_ANCHOR, _ANCHORED, (*_ANCHORED, *_FAILED)),
    (("beacon",), (), (*_ANCHORED, *_FAILED)),
    (("effective_manifest_hash",), _EFFECTIVE, (*_EFFECTIVE, *_FAILED)),
    (("draw_seed", "numbers", "winner_counts", "reserve_credits"), _DRAWN, _DRAWN),
    (("secret",), (), _DRAWN),
    (("winners_root", "ledger"), _SETTLED, _DRAWN),
    (("settlement_hash",), _SETTLED, _SETTLED),
    (("round_hash",), _FINISHED, _FINISHED),
    (("failure_reason",), _FAILED, _FAILED),
)


def check_stage(bundle: Bundle) -> None:
    """Raises NotVerified for the first field that is missing in the round's state, or that cannot be known in it."""
    for names, needed_in, known_in in _STAGES:
        for name in names:
            value = getattr(bundle, name)
            if bundle.state in needed_in and value is None:
                raise NotVerified(_published(name), f"missing, though the round is {bundle.state}")
            if bundle.state not in known_in:
                absent(_published(name), value)
    if bundle.chained_anchor_hash is None:
        # It failed before it was sealed: what no anchor covers is nothing to be relied on.
        for name in (*_ANCHOR, "beacon", "effective_manifest_hash"):
            absent(_published(name), getattr(bundle, name))


def is_settled(bundle: Bundle) -> bool:
    """Whether the round is over and paid out, so that everything about it can be checked."""
    return bundle.state in _SETTLED


def _published(name: str) -> str:
    if name == "secret":
        return "seed.secret"
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
