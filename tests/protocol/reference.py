"""A second settlement, written from docs/protocol.md alone: jars of money that prizes are paid out of, one at a time.

One rule: it shares no code with `protocol.settlement` and none of its shortcuts. Shares are fractions until the page
says that they are rounded down, and what is left is what is still in the jars.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Any

WHOLE = 10_000


@dataclass
class Jars:
    """Where money lies while a round is settled, micro-USDC."""

    fee: int = 0
    pool: int = 0
    reserve: int = 0

    def take_for_prize(self, amount: int) -> None:
        """Out of the reserve while there is any, then out of the pool."""
        out_of_reserve = min(amount, self.reserve)
        self.reserve -= out_of_reserve
        self.pool -= amount - out_of_reserve


def share_of(amount: int, basis_points: int) -> int:
    return floor(Fraction(amount * basis_points, WHOLE))


def settled(
    rules: Any,
    tickets: Mapping[str, int],
    wins: Mapping[str, Sequence[int]],
    pool: int,
    reserve: int,
) -> tuple[dict[str, int], dict[str, tuple[int, int, int, int]]]:
    """The terms by their published names, and for each operator commission, sub-prizes, jackpots and bonuses."""
    jars = Jars(pool=pool, reserve=reserve)
    told = {"pool0": pool, "reserve0": reserve} | dict.fromkeys("GFCRK", 0)
    commissions = {}
    for operator, count in tickets.items():
        paid = rules.ticket_price * count
        fee, commission, kept = (
            share_of(paid, bps) for bps in (rules.fee_bps, rules.commission_bps, rules.reserve_bps)
        )
        commissions[operator] = commission
        rest = paid - fee - commission - kept
        jars.fee, jars.reserve, jars.pool = jars.fee + fee, jars.reserve + kept, jars.pool + rest
        for name, amount in zip("GFCRK", (paid, fee, commission, kept, rest), strict=True):
            told[name] += amount

    told["L"] = sum(
        number * prize for own in wins.values() for number, prize in zip(own[1:], rules.prizes, strict=True)
    )
    told["A"] = jars.pool + jars.reserve
    cut = Fraction(1) if told["L"] <= told["A"] else Fraction(told["A"], told["L"])
    prizes = [floor(prize * cut) for prize in rules.prizes]
    sub_prizes = dict.fromkeys(tickets, 0)
    for operator, own in wins.items():
        for number, prize in zip(own[1:], prizes, strict=True):
            jars.take_for_prize(number * prize)
            sub_prizes[operator] += number * prize
    told["subPaid"] = sum(sub_prizes.values())
    told["P"] = jars.pool

    told["k"] = sum(own[0] for own in wins.values())
    told["B"] = share_of(told["F"], rules.winner_bonus_bps) if told["k"] else 0
    share = floor(Fraction(jars.pool, told["k"])) if told["k"] else 0
    bonus = floor(Fraction(told["B"], told["k"])) if told["k"] else 0
    jackpots, bonuses = dict.fromkeys(tickets, 0), dict.fromkeys(tickets, 0)
    for operator, own in wins.items():
        jackpots[operator], bonuses[operator] = own[0] * share, own[0] * bonus
        jars.pool, jars.fee = jars.pool - own[0] * share, jars.fee - own[0] * bonus
    told |= {
        "jackpotPaid": sum(jackpots.values()),
        "bonusPaid": sum(bonuses.values()),
        "feeKept": jars.fee,
        "pool1": jars.pool,
        "reserve1": jars.reserve,
    }
    released = {name: (commissions[name], sub_prizes[name], jackpots[name], bonuses[name]) for name in tickets}
    return told, released
