"""The rules a round is played by: price, shares, prizes and ranges, fixed when it opens.

The rule: the rules are copied onto the round once and hashed; nothing that changes later (a setting, the odds
ladder's next step) touches a round already open.

Implements docs/protocol.md, section 2 (rules of a round).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from protocol.canonical import DOMAIN, hash_object
from protocol.errors import Invalid
from protocol.prizes import TIERS

BASIS = 10_000
"""Basis points in a whole."""

Five = tuple[int, int, int, int, int]
Six = tuple[int, int, int, int, int, int]

_AMOUNT = re.compile(r"0|[1-9][0-9]{0,29}")
_BPS_KEYS = {
    "feeBps": "fee_bps",
    "commissionBps": "commission_bps",
    "reserveBps": "reserve_bps",
    "winnerBonusBps": "winner_bonus_bps",
}
_KEYS = {"v", "ticketPriceUsdc", "oddsRange", "prizes", "ranges", *_BPS_KEYS}


def parse_amount(text: object) -> int:
    """Reads an amount of a hashed object: a decimal string of whole micro-USDC, no sign, no leading zero.
    Raises Invalid.
    """
    if not isinstance(text, str) or _AMOUNT.fullmatch(text) is None:
        raise Invalid(f"an amount is a decimal string of micro-USDC, not {text!r}")
    return int(text)


@dataclass(frozen=True)
class Rules:
    """A round's rules. Amounts in micro-USDC, shares in basis points (10,000 = all), ranges as the highest
    number.

    Raises Invalid when a price or range is not positive, a prize negative, a share outside 0..10,000, or fee,
    commission and reserve together more than the whole.
    """

    ticket_price: int = 3_000_000
    odds_range: int = 10_000_000
    fee_bps: int = 500
    commission_bps: int = 1_000
    reserve_bps: int = 400
    winner_bonus_bps: int = 1_000
    prizes: Five = tuple(tier.prize for tier in TIERS)  # type: ignore[assignment]  # TIERS has five
    ranges: Five = tuple(tier.range for tier in TIERS)  # type: ignore[assignment]  # TIERS has five

    def __post_init__(self) -> None:
        if len(self.prizes) != 5 or len(self.ranges) != 5:
            raise Invalid("rules have five prizes and five ranges")
        for value in (self.ticket_price, *self.number_ranges):
            if not _is_whole(value) or value < 1:
                raise Invalid(f"a ticket price or range is a whole number from 1, not {value!r}")
        for value in self.prizes:
            if not _is_whole(value) or value < 0:
                raise Invalid(f"a prize is a whole number from 0, not {value!r}")
        for value in (self.fee_bps, self.commission_bps, self.reserve_bps, self.winner_bonus_bps):
            if not _is_whole(value) or not 0 <= value <= BASIS:
                raise Invalid(f"a share is 0 to {BASIS} basis points, not {value!r}")
        if self.fee_bps + self.commission_bps + self.reserve_bps > BASIS:
            raise Invalid("fee, commission and reserve together exceed the whole")

    @property
    def number_ranges(self) -> Six:
        """Highest number of the jackpot, then of bonus1 to bonus5."""
        return (self.odds_range, *self.ranges)

    def as_hashed(self) -> dict[str, Any]:
        """The object that is hashed and published (docs/protocol.md, section 2)."""
        return {
            "v": f"{DOMAIN}/rules",
            "ticketPriceUsdc": str(self.ticket_price),
            "oddsRange": self.odds_range,
            "feeBps": self.fee_bps,
            "commissionBps": self.commission_bps,
            "reserveBps": self.reserve_bps,
            "winnerBonusBps": self.winner_bonus_bps,
            "prizes": [str(prize) for prize in self.prizes],
            "ranges": list(self.ranges),
        }

    @property
    def hash(self) -> str:
        """`rulesHash`: 64 hex digits (docs/protocol.md, section 2)."""
        return hash_object(self.as_hashed())

    @classmethod
    def from_hashed(cls, hashed: Mapping[str, Any]) -> Rules:
        """Reads what `as_hashed` wrote. Raises Invalid for what would not be written back the same."""
        if not isinstance(hashed, Mapping) or set(hashed) != _KEYS:
            raise Invalid(f"rules have exactly the keys {', '.join(sorted(_KEYS))}")
        if hashed["v"] != f"{DOMAIN}/rules":
            raise Invalid(f"rules are of version {DOMAIN}/rules, not {hashed['v']!r}")
        if not isinstance(hashed["prizes"], list) or not isinstance(hashed["ranges"], list):
            raise Invalid("prizes and ranges are lists")
        return cls(
            ticket_price=parse_amount(hashed["ticketPriceUsdc"]),
            odds_range=hashed["oddsRange"],
            prizes=tuple(parse_amount(prize) for prize in hashed["prizes"]),  # type: ignore[arg-type]
            ranges=tuple(hashed["ranges"]),
            **{field: hashed[key] for key, field in _BPS_KEYS.items()},
        )


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
