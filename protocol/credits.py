"""Checks what expired prizes of earlier rounds brought into a round's reserve.

The rule: a credit is what nobody claimed of an earlier round, to the micro-USDC; it is never more than that
round paid in prizes, never comes from a round that paid nothing, and never comes twice.

Implements docs/protocol.md, section 7 (settlement).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from protocol.bundle import Bundle, ReserveCredit
from protocol.checks import Check, NotVerified, needed, same
from protocol.history import Earlier, walked_back
from protocol.rules import parse_amount
from protocol.settlement import prizes_paid


@dataclass(frozen=True)
class TierClaims:
    """How many tickets won in a sub-prize tier, and how many of these prizes were not claimed in time."""

    winners: int
    unclaimed: int


Claims = Callable[[int], Sequence[TierClaims] | None]
"""Gives what is public about the claims of a round's tiers 1 to 5, or None when the caller cannot tell."""


def check_credits(bundle: Bundle, earlier: Earlier | None, claims: Claims | None) -> Iterator[Check]:
    """Checks every credit of a bundle against the round it comes from, as far as that round is offered.

    Raises NotVerified at the first credit that cannot be true.
    """
    bound = _walked_back_to(bundle, earlier)
    for credit in bundle.reserve_credits or ():
        name = f"credit of round {credit.round_id}"
        source = None if earlier is None else earlier(credit.round_id)
        if source is None:
            yield Check(f"{name} to the reserve", proved=False)
            continue
        told = None if claims is None else claims(credit.round_id)
        explained = _explained(name, credit, source, told)
        yield Check(f"{name} to the reserve", proved=explained and credit.round_id >= bound)


def _walked_back_to(bundle: Bundle, earlier: Earlier | None) -> int:
    """The first of the rounds that the hashes bind to this one, of those back to the first one credited.

    None of them may have counted a credit of this round before.
    """
    credited = {credit.round_id for credit in bundle.reserve_credits or ()}
    bound = bundle.round_id
    for later, before in walked_back(bundle, earlier, until=min(credited, default=bundle.round_id)):
        if before is None:
            break
        if later.previous_round_hash is not None and bound == later.round_id:
            bound = before.round_id
        if twice := credited & {credit.round_id for credit in before.reserve_credits or ()}:
            raise NotVerified(f"credit of round {min(twice)}", f"round {before.round_id} counted it already")
    return bound


def _explained(name: str, credit: ReserveCredit, source: Bundle, told: Sequence[TierClaims] | None) -> bool:
    """Whether the claims that are public explain the credit; without them it is only bounded."""
    if source.ledger is None or source.settlement_hash is None:
        raise NotVerified(name, f"round {source.round_id} is {source.state} and paid no prizes")
    terms = {term: parse_amount(amount) for term, amount in source.ledger.items()}
    if credit.amount > terms["subPaid"] + terms["jackpotPaid"]:
        raise NotVerified(name, f"{credit.amount} is more than the round paid in prizes")
    if told is None:
        return False
    counts = needed(f"winnerCounts of round {source.round_id}", source.winner_counts)
    prizes = prizes_paid(source.rules, terms["L"], terms["A"])
    for tier, (claimed, count) in enumerate(zip(told, counts[1:], strict=True), start=1):
        same(f"winners in tier {tier} of round {source.round_id}", count, claimed.winners)
    unclaimed = sum(claimed.unclaimed * prize for claimed, prize in zip(told, prizes, strict=True))

    # Who won a jackpot is no list of claims: what is left has to be whole jackpot shares, of which there are k.
    share = terms["jackpotPaid"] // terms["k"] if terms["k"] else 0
    rest = credit.amount - unclaimed
    if rest and not (share and 0 < rest <= share * terms["k"] and rest % share == 0):
        raise NotVerified(name, f"expected {unclaimed}, found {credit.amount}")
    return True
