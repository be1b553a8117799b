"""Who gets what: the arithmetic of a settled round, and the proof object that binds it.

The rule: integers of micro-USDC only, and not one of them appears or disappears:
`G + pool0 + reserve0 = feeKept + bonusPaid + C + subPaid + jackpotPaid + pool1 + reserve1`, no term negative.

Implements docs/protocol.md, section 7 (settlement).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from typing import Any

from protocol.canonical import DOMAIN, hash_object
from protocol.errors import Invalid
from protocol.numbers import Numbers
from protocol.rules import BASIS, Five, Rules
from protocol.winners import TIER_COUNT, Winner, winner_leaf, winners_root, winners_root_in_order

__all__ = [
    "Release",
    "Settlement",
    "Stake",
    "Terms",
    "Winner",
    "available_for_prizes",
    "coverage",
    "settle",
    "settlement_hash",
    "settlement_proof",
    "settlement_terms",
    "winner_leaf",
    "winners_root",
    "winners_root_in_order",
    "worst_case",
]


@dataclass(frozen=True)
class Stake:
    """An operator in the draw and how many tickets it escrowed."""

    operator_id: str
    tickets: int


@dataclass(frozen=True)
class Terms:
    """The terms of a settlement, in micro-USDC except `k`, named as docs/protocol.md, section 7 names them.

    G paid for tickets; F fees, C commissions, R reserve contributions and K jackpot contributions out of it;
    pool0 and reserve0 held before; L sub-prizes won, A available for them, subPaid paid; P the pool at the
    jackpot's draw, k jackpot tickets, jackpotPaid paid; B the winner bonus, bonusPaid paid of it; feeKept the
    fees left; pool1 and reserve1 held after.
    """

    G: int
    F: int
    C: int
    R: int
    K: int
    pool0: int
    reserve0: int
    L: int
    A: int
    subPaid: int
    P: int
    k: int
    jackpotPaid: int
    B: int
    bonusPaid: int
    feeKept: int
    pool1: int
    reserve1: int

    def __post_init__(self) -> None:
        # Wrong terms are our own bug and must stop the settlement; they are never an answer to bad input.
        if min(astuple(self)) < 0:
            raise ArithmeticError(f"a settlement term is negative: {self}")
        before = self.G + self.pool0 + self.reserve0
        paid = self.feeKept + self.bonusPaid + self.C + self.subPaid + self.jackpotPaid
        if before != paid + self.pool1 + self.reserve1:
            raise ArithmeticError(f"the settlement does not add up: {self}")

    def as_hashed(self) -> dict[str, str]:
        """The ledger object that is published and hashed: every term as a decimal string."""
        return {field.name: str(getattr(self, field.name)) for field in fields(self)}


@dataclass(frozen=True)
class Release:
    """What one operator is released, in micro-USDC: its commission, and prizes and bonuses of its winning
    tickets.
    """

    commission: int
    sub_prizes: int
    jackpot: int
    bonus: int

    @property
    def total(self) -> int:
        """All of it together, in micro-USDC."""
        return self.commission + self.sub_prizes + self.jackpot + self.bonus


@dataclass(frozen=True)
class Settlement:
    """A settled round, in micro-USDC.

    `prizes` is what one win of tiers 1 to 5 is paid (less than the rules promise when the money did not
    suffice), `jackpot_share` and `bonus_share` what one jackpot ticket brings; `releases` is by operator id.
    """

    terms: Terms
    prizes: Five
    jackpot_share: int
    bonus_share: int
    releases: Mapping[str, Release]

    def prize_of(self, tier: int) -> int:
        """What one winning ticket of `tier` (0 = jackpot) is paid, in micro-USDC."""
        return self.jackpot_share if tier == 0 else self.prizes[tier - 1]


@dataclass(frozen=True)
class _Shares:
    """How one operator's ticket money divides; the jackpot contribution takes the rounding."""

    paid: int
    fee: int
    commission: int
    reserve: int

    @classmethod
    def of(cls, rules: Rules, tickets: int) -> _Shares:
        paid = tickets * rules.ticket_price
        bps = (rules.fee_bps, rules.commission_bps, rules.reserve_bps)
        return cls(paid, *(paid * share // BASIS for share in bps))

    @property
    def jackpot(self) -> int:
        return self.paid - self.fee - self.commission - self.reserve


def settle(
    rules: Rules,
    stakes: Iterable[Stake],
    wins: Mapping[str, Sequence[int]],
    pool0: int,
    reserve0: int,
) -> Settlement:
    """Settles a round (docs/protocol.md, section 7).

    `wins` maps an operator id to six counts of winning tickets, tier 0 (jackpot) to 5; an operator may be
    absent. `pool0` and `reserve0` are held before the round, in micro-USDC. Raises Invalid for an operator
    given twice, wins of an operator that is not in the draw, counts that are not six whole numbers from 0 to
    the operator's tickets, and negative amounts; ArithmeticError if the sums did not add up, which would be a
    bug here.
    """
    stakes = list(stakes)
    _check_wins(stakes, wins)
    counts = [sum(won[tier] for won in wins.values()) for tier in range(TIER_COUNT)]
    terms, prizes = settlement_terms(rules, stakes, counts, pool0, reserve0)
    jackpot_share = terms.jackpotPaid // terms.k if terms.k else 0
    bonus_share = terms.bonusPaid // terms.k if terms.k else 0

    # Each operator is released its commission and whatever its own tickets won.
    releases = {}
    for stake in stakes:
        jackpots, *subs = wins.get(stake.operator_id, (0,) * TIER_COUNT)
        releases[stake.operator_id] = Release(
            commission=_Shares.of(rules, stake.tickets).commission,
            sub_prizes=sum(count * prize for count, prize in zip(subs, prizes, strict=True)),
            jackpot=jackpots * jackpot_share,
            bonus=jackpots * bonus_share,
        )
    released = sum(release.total for release in releases.values())
    if released != terms.C + terms.subPaid + terms.jackpotPaid + terms.bonusPaid:
        raise ArithmeticError("the releases do not add up to the terms")
    return Settlement(terms, prizes, jackpot_share, bonus_share, releases)


def settlement_terms(
    rules: Rules, stakes: Iterable[Stake], counts: Sequence[int], pool0: int, reserve0: int
) -> tuple[Terms, Five]:
    """The terms of a settlement and what one win of tiers 1 to 5 is paid (docs/protocol.md, section 7).

    They depend on how many tickets won in each tier (`counts`, tier 0 to 5), not on whose tickets these were.
    Amounts in micro-USDC. Raises Invalid for negative amounts or counts, and for an operator given twice.
    """
    stakes = list(stakes)
    if len({stake.operator_id for stake in stakes}) != len(stakes):
        raise Invalid("an operator has two stakes")
    if len(counts) != TIER_COUNT or min(pool0, reserve0, *counts, *(stake.tickets for stake in stakes)) < 0:
        raise Invalid("pool, reserve, ticket counts and the six winner counts are never negative")
    shares = [_Shares.of(rules, stake.tickets) for stake in stakes]
    fees = sum(share.fee for share in shares)
    to_reserve = sum(share.reserve for share in shares)
    to_pool = sum(share.jackpot for share in shares)

    # 1. Sub-prizes: in full if the reserve and then the pool can pay them, otherwise all cut alike.
    owed = sum(count * prize for count, prize in zip(counts[1:], rules.prizes, strict=True))
    available = reserve0 + to_reserve + pool0 + to_pool
    prizes = prizes_paid(rules, owed, available)
    sub_paid = sum(count * prize for count, prize in zip(counts[1:], prizes, strict=True))
    from_reserve = min(sub_paid, reserve0 + to_reserve)
    pool = pool0 + to_pool - (sub_paid - from_reserve)

    # 2. and 3. The jackpot empties the pool and brings a bonus out of the fee, or the pool rolls over.
    winners = counts[0]
    bonus = fees * rules.winner_bonus_bps // BASIS if winners else 0
    jackpot_paid = pool // winners * winners if winners else 0
    bonus_paid = bonus // winners * winners if winners else 0

    terms = Terms(
        G=sum(share.paid for share in shares),
        F=fees,
        C=sum(share.commission for share in shares),
        R=to_reserve,
        K=to_pool,
        pool0=pool0,
        reserve0=reserve0,
        L=owed,
        A=available,
        subPaid=sub_paid,
        P=pool,
        k=winners,
        jackpotPaid=jackpot_paid,
        B=bonus,
        bonusPaid=bonus_paid,
        feeKept=fees - bonus_paid,
        pool1=pool - jackpot_paid,
        reserve1=reserve0 + to_reserve - from_reserve,
    )
    return terms, prizes


def available_for_prizes(rules: Rules, stakes: Iterable[Stake], pool0: int, reserve0: int) -> int:
    """`A`: what sub-prizes can be paid from, in micro-USDC, known as soon as a round is sealed
    (docs/protocol.md, section 7).
    """
    shares = (_Shares.of(rules, stake.tickets) for stake in stakes)
    return pool0 + reserve0 + sum(share.reserve + share.jackpot for share in shares)


def worst_case(rules: Rules, most_shared: Sequence[int]) -> int:
    """The most the sub-prizes of a sealed round could cost, in micro-USDC (docs/protocol.md, section 7).

    `most_shared` is, for bonus1 to bonus5, the most tickets of the round that share one number. Raises
    Invalid unless these are five counts.
    """
    if len(most_shared) != len(rules.prizes) or min(most_shared) < 0:
        raise Invalid("the worst case takes five counts from 0")
    return sum(count * prize for count, prize in zip(most_shared, rules.prizes, strict=True))


def coverage(available: int, worst: int) -> int | None:
    """How much of the worst case the available money covers, in basis points rounded down (10,000 = all of
    it); None when nothing could be won. Amounts in micro-USDC.
    """
    return available * BASIS // worst if worst else None


def settlement_proof(
    round_id: int,
    chained_anchor_hash: str,
    effective_manifest_hash: str,
    draw_seed: str,
    numbers: Numbers,
    winner_counts: Sequence[int],
    winners_root: str,
    terms: Terms,
) -> dict[str, Any]:
    """The settlement proof object (docs/protocol.md, section 7). `winner_counts` are six, tier 0 (jackpot) to
    5.
    """
    if len(winner_counts) != TIER_COUNT:
        raise Invalid("winner counts are six, jackpot first")
    return {
        "v": f"{DOMAIN}/settlement",
        "roundId": round_id,
        "chainedAnchorHash": chained_anchor_hash,
        "effectiveManifestHash": effective_manifest_hash,
        "drawSeed": draw_seed,
        "numbers": numbers.as_hashed(),
        "winnerCounts": list(winner_counts),
        "winnersRoot": winners_root,
        "ledger": terms.as_hashed(),
    }


def settlement_hash(proof: Mapping[str, Any]) -> str:
    """`settlementHash`, 64 hex digits, of a `settlement_proof`."""
    return hash_object(dict(proof))


def prizes_paid(rules: Rules, owed: int, available: int) -> Five:
    """What one win of tiers 1 to 5 is paid (docs/protocol.md, section 7): what the rules promise, or less, in
    proportion, when more is `owed` (`L`) than is `available` (`A`). All in micro-USDC.
    """
    if owed <= available:
        return rules.prizes
    first, second, third, fourth, fifth = (prize * available // owed for prize in rules.prizes)
    return first, second, third, fourth, fifth


def _check_wins(stakes: Sequence[Stake], wins: Mapping[str, Sequence[int]]) -> None:
    tickets = {stake.operator_id: stake.tickets for stake in stakes}
    for operator_id, won in wins.items():
        if operator_id not in tickets:
            raise Invalid(f"operator {operator_id} has wins but no stake")
        if len(won) != TIER_COUNT or not all(0 <= count <= tickets[operator_id] for count in won):
            raise Invalid(f"wins of {operator_id} are six counts from 0 to its tickets")
