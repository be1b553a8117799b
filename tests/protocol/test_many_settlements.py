"""Settlements by the million, one round after the other: not one micro-USDC drifts.

Each is compared with `tests.protocol.reference`, and its money is moved between accounts that must add up to nothing
after every round. `SETTLEMENTS` says how many (`make test-settlements` does a million), `SEED` which; every part of
them can be played again by itself.
"""

from __future__ import annotations

import os
import random
from collections import Counter, deque
from dataclasses import asdict, replace

import pytest

from protocol.rules import Rules
from protocol.settlement import Settlement, Stake, available_for_prizes, settle
from tests.protocol.reference import settled as reference

SETTLEMENTS = int(os.environ.get("SETTLEMENTS") or 20_000)
SEED = int(os.environ.get("SEED") or 1)
PARTS = max(8, SETTLEMENTS // 5_000)
LONGEST_HISTORY = 60
KINDS = (
    "cut", "no jackpot", "many jackpots", "beyond 2^53", "beyond 2^63", "nothing paid in", "remainders", "failed",
    "expired",
)  # fmt: skip
EDGES = (0, 1, 2**31 - 1, 2**31, 2**53 - 1, 2**53, 2**53 + 1, 2**62, 2**63 - 1)


class Lottery:
    """Rounds one after the other and the accounts between which their money moves."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.accounts: Counter[str] = Counter()
        self.deposited = 0
        self.left = {"pool1": 0, "reserve1": 0}
        self.credited = 0
        self.unclaimed: deque[dict[str, int]] = deque()
        self.settled = 0
        self.seen: Counter[str] = Counter()
        # Somebody begins with a full pool: sums near the edges of what computers hold are reached at once.
        for name in ("pool", "reserve"):
            start = dice.choice(EDGES) if dice.random() < 0.5 else dice.randrange(10**12)
            self.pay_in(name, start)
            self.left[f"{name}1"] = start

    def pay_in(self, account: str, amount: int) -> None:
        self.deposited += amount
        self.move({"external": -amount, account: amount})

    def move(self, amounts: dict[str, int]) -> None:
        assert sum(amounts.values()) == 0, amounts
        self.accounts.update(amounts)

    def play(self) -> None:
        """A round that is settled; before it some fail, and prizes of earlier ones may expire."""
        dice = self.dice
        while dice.random() < 0.1:
            self.fail(self.escrowed(some_rules(dice), some_tickets(dice)))
        rules, tickets = some_rules(dice), some_tickets(dice)
        escrow = self.escrowed(rules, tickets)
        self.expire()
        pool0, reserve0 = self.left["pool1"], self.left["reserve1"] + self.credited
        self.credited = 0
        wins = some_wins(dice, tickets)
        if dice.random() < 0.3:
            self.expire()  # while the round is being settled: the next one begins with it
        stakes = [Stake(name, count) for name, count in tickets.items()]
        ours = settle(rules, stakes, wins, pool0, reserve0)
        self.compare(ours, rules, tickets, wins)
        assert available_for_prizes(rules, stakes, pool0, reserve0) == ours.terms.A
        self.release(ours, escrow)

    def escrowed(self, rules: Rules, tickets: dict[str, int]) -> dict[str, int]:
        """What each operator pays in for its tickets, beside what it has."""
        escrow = {f"operator {name}": count * rules.ticket_price for name, count in tickets.items()}
        for account, amount in escrow.items():
            self.pay_in(account, max(0, amount - self.accounts[account]))
            assert self.accounts[account] >= amount
        self.move({**{account: -amount for account, amount in escrow.items()}, "escrow": sum(escrow.values())})
        return escrow

    def fail(self, escrow: dict[str, int]) -> None:
        self.move({**escrow, "escrow": -sum(escrow.values())})
        self.seen["failed"] += 1

    def compare(
        self, ours: Settlement, rules: Rules, tickets: dict[str, int], wins: dict[str, tuple[int, ...]]
    ) -> None:
        terms, released = reference(rules, tickets, wins, ours.terms.pool0, ours.terms.reserve0)
        assert asdict(ours.terms) == terms
        assert {
            name: (each.commission, each.sub_prizes, each.jackpot, each.bonus) for name, each in ours.releases.items()
        } == released
        self.seen.update(
            {
                "cut": terms["L"] > terms["A"],
                "no jackpot": terms["k"] == 0,
                "many jackpots": terms["k"] > 1_000,
                "beyond 2^53": terms["A"] > 2**53,
                "beyond 2^63": terms["A"] > 2**63,
                "nothing paid in": terms["G"] == 0,
                "remainders": bool(terms["k"] and terms["pool1"]),
            }
        )

    def release(self, ours: Settlement, escrow: dict[str, int]) -> None:
        terms = ours.terms
        before = self.accounts["pool"], self.accounts["reserve"] - self.credited
        assert before == (terms.pool0, terms.reserve0), "the accounts hold what the round begins with"
        self.move(
            {
                "escrow": -sum(escrow.values()),
                "fee": terms.feeKept,
                "pool": terms.pool1 - terms.pool0,
                "reserve": terms.reserve1 - terms.reserve0,
                **{f"operator {name}": each.total for name, each in ours.releases.items()},
            }
        )
        assert self.accounts["escrow"] == 0
        self.left = {"pool1": terms.pool1, "reserve1": terms.reserve1}
        won = {f"operator {name}": each.sub_prizes + each.jackpot for name, each in ours.releases.items()}
        self.unclaimed.append({name: self.dice.choice((0, amount, amount // 3)) for name, amount in won.items()})
        self.settled += 1

    def expire(self) -> None:
        """Prizes that nobody claimed go back; an operator that has spent them owes them."""
        while self.unclaimed and self.dice.random() < 0.4:
            taken = self.unclaimed.popleft()
            amount = sum(taken.values())
            self.move({**{name: -each for name, each in taken.items()}, "reserve": amount})
            self.credited += amount
            self.seen["expired"] += amount > 0

    def audit(self) -> None:
        """Everything paid in is somewhere, and nothing else is."""
        held = sum(amount for account, amount in self.accounts.items() if account != "external")
        assert sum(self.accounts.values()) == 0
        assert held == self.deposited == -self.accounts["external"]
        assert self.accounts["pool"] == self.left["pool1"]
        assert self.accounts["reserve"] == self.left["reserve1"] + self.credited
        assert min(self.accounts[account] for account in ("pool", "reserve", "fee", "escrow")) >= 0


def some_rules(dice: random.Random) -> Rules:
    cuts = sorted(dice.choice((0, 0, 1, 333, 9_999, 10_000, dice.randrange(10_001))) for _ in range(3))
    if dice.random() < 0.5:
        cuts = [500, 1_500, 1_900]
    highest = dice.choice((1, 100, 10**6, 10**11, 10**15, 2**53, 2**63))
    return Rules(
        ticket_price=dice.choice((1, 3, 33, 3_000_000, 3_000_000, 99_999_989, 2**40)),
        odds_range=dice.choice((2, 10**7, 3 * 10**9)),
        fee_bps=cuts[0],
        commission_bps=cuts[1] - cuts[0],
        reserve_bps=cuts[2] - cuts[1],
        winner_bonus_bps=dice.choice((0, 1, 1_000, 9_999, 10_000)),
        prizes=tuple(dice.randrange(highest) for _ in range(5)),  # type: ignore[arg-type]
    )


def some_tickets(dice: random.Random) -> dict[str, int]:
    most = dice.choice((1, 10, 1_000, 10**6, 10**8, 2**31))
    count = dice.choice((0, 1, 1, 2, 2, 3, 5, 9))
    return {f"op{place}": dice.choice((0, 1, most, dice.randint(0, most))) for place in range(count)}


def some_wins(dice: random.Random, tickets: dict[str, int]) -> dict[str, tuple[int, ...]]:
    wins = {}
    jackpots = dice.random() < 0.4
    for name, count in tickets.items():
        if dice.random() < 0.8:
            most = min(count, dice.choice((0, 1, 7, 2_000, count)))
            wins[name] = (dice.randint(0, most) if jackpots else 0, *(dice.randint(0, most) for _ in range(5)))
    return wins


def play_many(lottery: Lottery, rounds: int) -> None:
    for _ in range(rounds):
        lottery.play()
        lottery.audit()


@pytest.mark.parametrize("part", range(PARTS))
def test_everything_paid_and_held_is_what_came_in_to_the_micro_usdc(part: int) -> None:
    """One part of all settlements, in histories of up to sixty rounds that each begin anew."""
    dice = random.Random(f"{SEED}/{part}")
    wanted = SETTLEMENTS // PARTS + (part < SETTLEMENTS % PARTS)
    done, seen = 0, Counter[str]()
    while done < wanted:
        lottery = Lottery(dice)
        try:
            play_many(lottery, min(dice.randint(1, LONGEST_HISTORY), wanted - done))
        except AssertionError as difference:
            difference.add_note(
                f"SEED={SEED} SETTLEMENTS={SETTLEMENTS}, part {part}, settlement {done + lottery.settled}"
            )
            raise
        done += lottery.settled
        seen += lottery.seen
    assert done == wanted
    if wanted >= 1_000:
        rare = {name: seen[name] for name in KINDS if seen[name] < wanted // 200}
        assert not rare, f"hardly tried: {rare} of {wanted}"


def test_one_micro_usdc_too_many_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = settle

    def generous(*given: object) -> Settlement:
        settled = honest(*given)  # type: ignore[arg-type]
        first = next(iter(settled.releases), None)
        if first is None:
            return settled
        more = replace(settled.releases[first], commission=settled.releases[first].commission + 1)
        return replace(settled, releases={**settled.releases, first: more})

    monkeypatch.setitem(globals(), "settle", generous)
    lottery = Lottery(random.Random(1))
    with pytest.raises(AssertionError):
        play_many(lottery, 100)
