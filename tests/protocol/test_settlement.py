"""The arithmetic of a settled round: examples worked by hand, and the invariant over anything."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import Invalid
from protocol.numbers import Numbers
from protocol.rules import Rules
from protocol.settlement import (
    Release,
    Settlement,
    Stake,
    Terms,
    available_for_prizes,
    coverage,
    settle,
    settlement_hash,
    settlement_proof,
    settlement_terms,
    worst_case,
)

USD = 1_000_000
STAKES = [Stake("opA", 1_000), Stake("opB", 500)]


def test_a_round_without_any_win_rolls_everything_over() -> None:
    """opA pays 3,000 USD and opB 1,500: 5 % fee, 10 % commission, 4 % reserve and 81 % to the pool."""
    settled = settle(Rules(), STAKES, {}, 1_000 * USD, 20 * USD)
    assert settled.terms == Terms(
        G=4_500 * USD, F=225 * USD, C=450 * USD, R=180 * USD, K=3_645 * USD,
        pool0=1_000 * USD, reserve0=20 * USD,
        L=0, A=4_845 * USD, subPaid=0,
        P=4_645 * USD, k=0, jackpotPaid=0,
        B=0, bonusPaid=0, feeKept=225 * USD,
        pool1=4_645 * USD, reserve1=200 * USD,
    )  # fmt: skip
    assert settled.prizes == Rules().prizes
    assert settled.releases == {
        "opA": Release(300 * USD, 0, 0, 0),
        "opB": Release(150 * USD, 0, 0, 0),
    }


def test_the_jackpot_and_the_winner_bonus_are_divided_and_their_remainders_stay() -> None:
    """Seven jackpot tickets. Sub-prizes of 220 USD take the whole reserve of 200 and 20 out of the pool; of
    the 4,625 USD then in it each jackpot ticket gets 660.714285 and 5 micro-USDC stay. The bonus is a tenth
    of the fee, 22.5 USD: 3.214285 each, and again 5 micro-USDC stay, as fee.
    """
    wins = {"opA": (5, 0, 0, 1, 0, 12), "opB": (2, 0, 0, 0, 3, 6)}
    settled = settle(Rules(), STAKES, wins, 1_000 * USD, 20 * USD)
    assert settled.terms == Terms(
        G=4_500 * USD, F=225 * USD, C=450 * USD, R=180 * USD, K=3_645 * USD,
        pool0=1_000 * USD, reserve0=20 * USD,
        L=220 * USD, A=4_845 * USD, subPaid=220 * USD,
        P=4_625 * USD, k=7, jackpotPaid=4_624_999_995,
        B=22_500_000, bonusPaid=22_499_995, feeKept=202_500_005,
        pool1=5, reserve1=0,
    )  # fmt: skip
    assert (settled.jackpot_share, settled.bonus_share) == (660_714_285, 3_214_285)
    assert settled.releases == {
        "opA": Release(300 * USD, 160 * USD, 3_303_571_425, 16_071_425),
        "opB": Release(150 * USD, 60 * USD, 1_321_428_570, 6_428_570),
    }
    assert settled.releases["opA"].total == 3_779_642_850
    assert settled.prize_of(0) == 660_714_285
    assert settled.prize_of(5) == 5 * USD


def test_prizes_the_money_does_not_suffice_for_are_all_cut_alike() -> None:
    """One hundred tickets bring 255 USD for prizes; 1,010 USD were won. Each prize becomes prize × 255 //
    1,010 and the one micro-USDC that rounding leaves stays in the pool.
    """
    settled = settle(Rules(), [Stake("opA", 100)], {"opA": (0, 0, 1, 0, 0, 2)}, 0, 0)
    assert settled.prizes == (6_311_881_188, 252_475_247, 25_247_524, 2_524_752, 1_262_376)
    assert settled.terms == Terms(
        G=300 * USD, F=15 * USD, C=30 * USD, R=12 * USD, K=243 * USD,
        pool0=0, reserve0=0,
        L=1_010 * USD, A=255 * USD, subPaid=254_999_999,
        P=1, k=0, jackpotPaid=0,
        B=0, bonusPaid=0, feeKept=15 * USD,
        pool1=1, reserve1=0,
    )  # fmt: skip
    assert settled.releases["opA"] == Release(30 * USD, 254_999_999, 0, 0)


def test_the_last_micro_usdc_can_be_paid_in_full() -> None:
    rules = replace(Rules(), prizes=(255 * USD, 0, 0, 0, 0))
    terms = settle(rules, [Stake("opA", 100)], {"opA": (0, 1, 0, 0, 0, 0)}, 0, 0).terms
    assert (terms.L, terms.A, terms.subPaid, terms.P) == (255 * USD, 255 * USD, 255 * USD, 0)
    one_more = replace(rules, prizes=(255 * USD + 1, 0, 0, 0, 0))
    assert settle(one_more, [Stake("opA", 100)], {"opA": (0, 1, 0, 0, 0, 0)}, 0, 0).prizes[0] == 255 * USD


def test_a_jackpot_won_when_the_pool_is_empty_pays_nothing_but_still_the_bonus() -> None:
    wins = {"opA": (1, 1, 0, 0, 0, 0)}
    terms = settle(Rules(), [Stake("opA", 100)], wins, 0, 0).terms
    assert (terms.P, terms.k, terms.jackpotPaid, terms.bonusPaid) == (0, 1, 0, 1_500_000)


def test_shares_are_rounded_down_for_each_operator_by_itself() -> None:
    """At a price of 33 the 5 % fee of one ticket is 1.65: two operators pay 1 each, where one with both pays
    3.
    """
    rules = replace(Rules(), ticket_price=33)
    two, _ = settlement_terms(rules, [Stake("a", 1), Stake("b", 1)], [0] * 6, 0, 0)
    one, _ = settlement_terms(rules, [Stake("a", 2)], [0] * 6, 0, 0)
    assert (two.F, two.C, two.R, two.K) == (2, 6, 2, 56)
    assert (one.F, one.C, one.R, one.K) == (3, 6, 2, 55)


BPS = st.integers(0, 10_000)
AMOUNTS = st.integers(0, 10**15)


@st.composite
def rounds(draw: st.DrawFn) -> tuple[Rules, list[Stake], dict[str, tuple[int, ...]], int, int]:
    cuts = sorted(draw(st.tuples(BPS, BPS, BPS)))
    rules = Rules(
        ticket_price=draw(st.integers(1, 10**8)),
        fee_bps=cuts[0],
        commission_bps=cuts[1] - cuts[0],
        reserve_bps=cuts[2] - cuts[1],
        winner_bonus_bps=draw(BPS),
        prizes=draw(st.tuples(*[st.integers(0, 10**11)] * 5)),
    )
    tickets = draw(st.lists(st.integers(0, 10**6), min_size=0, max_size=12))
    stakes = [Stake(f"op{position}", count) for position, count in enumerate(tickets)]
    wins = {
        stake.operator_id: draw(st.tuples(*[st.integers(0, min(stake.tickets, 50))] * 6))
        for stake in stakes
        if draw(st.booleans())
    }
    if draw(st.booleans()):
        wins = {operator_id: (0, *won[1:]) for operator_id, won in wins.items()}
    return rules, stakes, wins, draw(AMOUNTS), draw(AMOUNTS)


@given(rounds())
def test_not_one_micro_usdc_appears_or_disappears(
    example: tuple[Rules, list[Stake], dict[str, tuple[int, ...]], int, int],
) -> None:
    rules, stakes, wins, pool0, reserve0 = example
    settled = settle(rules, stakes, wins, pool0, reserve0)
    terms = settled.terms
    assert sum(stake.tickets for stake in stakes) * rules.ticket_price == terms.G
    assert terms.G == terms.F + terms.C + terms.R + terms.K
    assert terms.G + pool0 + reserve0 == (
        terms.feeKept + terms.bonusPaid + terms.C + terms.subPaid + terms.jackpotPaid + terms.pool1 + terms.reserve1
    )
    assert all(int(value) >= 0 for value in terms.as_hashed().values())
    _check_promises(settled, rules, wins)


def _check_promises(settled: Settlement, rules: Rules, wins: dict[str, tuple[int, ...]]) -> None:
    terms = settled.terms
    released = sum(release.total for release in settled.releases.values())
    assert released == terms.C + terms.subPaid + terms.jackpotPaid + terms.bonusPaid
    counts = [sum(won[tier] for won in wins.values()) for tier in range(6)]
    assert sum(map(int.__mul__, counts[1:], settled.prizes)) == terms.subPaid <= terms.A
    if terms.L <= terms.A:
        assert settled.prizes == rules.prizes
        assert terms.subPaid == terms.L
    else:
        # Rounding down leaves less than one micro-USDC a win, in the reserve or in the pool.
        assert terms.reserve1 + terms.P == terms.A - terms.subPaid < sum(counts[1:])
    if terms.reserve1:
        assert terms.pool0 + terms.K == terms.P, "the pool is touched only when the reserve is empty"
    if counts[0] == 0:
        assert (terms.pool1, terms.bonusPaid) == (terms.P, 0)
    else:
        assert terms.pool1 < counts[0]
        assert 0 <= terms.B - terms.bonusPaid < counts[0]


@given(rounds())
def test_the_order_of_operators_changes_nothing(
    example: tuple[Rules, list[Stake], dict[str, tuple[int, ...]], int, int],
) -> None:
    rules, stakes, wins, pool0, reserve0 = example
    backwards = dict(reversed(wins.items()))
    assert settle(rules, stakes, wins, pool0, reserve0) == settle(rules, stakes[::-1], backwards, pool0, reserve0)


@pytest.mark.parametrize(
    ("stakes", "wins", "pool0", "reserve0"),
    [
        ([Stake("a", 1), Stake("a", 1)], {}, 0, 0),
        ([Stake("a", -1)], {}, 0, 0),
        (STAKES, {}, -1, 0),
        (STAKES, {}, 0, -1),
        (STAKES, {"opC": (0,) * 6}, 0, 0),
        (STAKES, {"opA": (0,) * 5}, 0, 0),
        (STAKES, {"opA": (-1, 0, 0, 0, 0, 0)}, 0, 0),
        (STAKES, {"opB": (0, 0, 0, 0, 0, 501)}, 0, 0),
    ],
)
def test_input_that_cannot_be_is_refused(
    stakes: list[Stake], wins: dict[str, tuple[int, ...]], pool0: int, reserve0: int
) -> None:
    with pytest.raises(Invalid):
        settle(Rules(), stakes, wins, pool0, reserve0)


def test_terms_that_do_not_add_up_or_are_negative_stop_everything() -> None:
    terms = settle(Rules(), STAKES, {}, 0, 0).terms
    with pytest.raises(ArithmeticError, match="add up"):
        replace(terms, pool1=terms.pool1 + 1)
    with pytest.raises(ArithmeticError, match="negative"):
        replace(terms, pool1=-1, feeKept=terms.feeKept + terms.pool1 + 1)


def test_the_worst_case_is_every_most_shared_number_drawn_at_once() -> None:
    worst = worst_case(Rules(), (1, 2, 3, 4, 5))
    assert worst == (25_000 + 2 * 1_000 + 3 * 100 + 4 * 10 + 5 * 5) * USD
    with pytest.raises(Invalid):
        worst_case(Rules(), (1, 2, 3, 4))
    with pytest.raises(Invalid):
        worst_case(Rules(), (1, 2, 3, 4, -5))


def test_coverage_is_told_in_basis_points() -> None:
    available = available_for_prizes(Rules(), STAKES, 1_000 * USD, 20 * USD)
    assert available == settle(Rules(), STAKES, {}, 1_000 * USD, 20 * USD).terms.A == 4_845 * USD
    assert coverage(available, 27_365 * USD) == 1_770
    assert coverage(available, 4_845 * USD) == 10_000
    assert coverage(available, 0) is None


def test_the_settlement_hash_is_the_hash_of_exactly_this_text() -> None:
    terms = settle(Rules(), [Stake("opA", 100)], {"opA": (0, 0, 1, 0, 0, 2)}, 0, 0).terms
    proof = settlement_proof(
        7, "aa" * 32, "bb" * 32, "cc" * 32, Numbers(1, 2, 3, 4, 5, 6), [0, 0, 1, 0, 0, 2], "dd" * 32, terms
    )
    text = (
        '{"chainedAnchorHash":"' + "aa" * 32 + '","drawSeed":"' + "cc" * 32 + '","effectiveManifestHash":"'
        + "bb" * 32 + '","ledger":{"A":"255000000","B":"0","C":"30000000","F":"15000000","G":"300000000",'
        '"K":"243000000","L":"1010000000","P":"1","R":"12000000","bonusPaid":"0","feeKept":"15000000",'
        '"jackpotPaid":"0","k":"0","pool0":"0","pool1":"1","reserve0":"0","reserve1":"0",'
        '"subPaid":"254999999"},"numbers":{"bonus1":2,"bonus2":3,"bonus3":4,"bonus4":5,"bonus5":6,'
        '"jackpotNumber":1},"roundId":7,"v":"svc-lottery/v2/settlement","winnerCounts":[0,0,1,0,0,2],'
        '"winnersRoot":"' + "dd" * 32 + '"}'
    )  # fmt: skip
    assert settlement_hash(proof) == sha256(text.encode()).hexdigest()
    with pytest.raises(Invalid):
        settlement_proof(7, "aa" * 32, "bb" * 32, "cc" * 32, Numbers(1, 2, 3, 4, 5, 6), [0] * 5, "dd" * 32, terms)
