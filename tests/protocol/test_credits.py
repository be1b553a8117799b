"""Credits to the reserve: what expired of earlier rounds, as a stranger checks it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from protocol.bundle import parse_bundle
from protocol.checks import NotVerified
from protocol.credits import Claims, TierClaims
from protocol.errors import Invalid
from protocol.proof import check_bundle
from protocol.settlement import prizes_paid
from protocol.verify import main
from tests.protocol.rounds import Round, make_failed_round, make_round


def checked(made: Round, *earlier: Round, claims: Claims | None = None) -> dict[str, bool]:
    bundles = {row.bundle["roundId"]: row.bundle for row in earlier}
    checks = check_bundle(made.bundle, lambda name: made.lines[name], bundles.get, claims)
    return {check.name: check.proved for check in checks}


def refused(made: Round, *earlier: Round, claims: Claims | None = None) -> str:
    with pytest.raises(NotVerified) as difference:
        checked(made, *earlier, claims=claims)
    return difference.value.message


def a_round_with(jackpots: bool) -> Round:
    """A first round whose jackpot some tickets won, or none, with winners in tier 4 either way."""
    for salt in range(200):
        made = make_round(1, salt=salt)
        counts = made.bundle["winnerCounts"]
        if counts[4] and (counts[0] > 1 if jackpots else counts[0] == 0):
            return made
    raise AssertionError("no such round")


def nothing_claimed(made: Round) -> tuple[list[TierClaims], int]:
    """What is public when no sub-prize of the round was claimed, and their sum."""
    counts, ledger = made.bundle["winnerCounts"], made.bundle["ledger"]
    return [TierClaims(count, count) for count in counts[1:]], int(ledger["subPaid"])


CREDIT = "credit of round 1 to the reserve"


def test_a_credit_is_exactly_what_was_not_claimed() -> None:
    one = a_round_with(jackpots=False)
    told, amount = nothing_claimed(one)
    two = make_round(2, previous=one, expired={1: amount})
    checks = checked(two, one, claims=lambda _: told)
    assert checks["pool0 and reserve0"]
    assert checks[CREDIT]

    bundle = parse_bundle(one.bundle)
    prize = prizes_paid(bundle.rules, int(one.bundle["ledger"]["L"]), int(one.bundle["ledger"]["A"]))[3]
    one_claimed = [*told[:3], TierClaims(told[3].winners, told[3].unclaimed - 1), told[4]]
    assert checked(make_round(2, previous=one, expired={1: amount - prize}), one, claims=lambda _: one_claimed)[CREDIT]
    assert refused(two, one, claims=lambda _: one_claimed) == (
        f"credit of round 1: expected {amount - prize}, found {amount}"
    )
    short = make_round(2, previous=one, expired={1: amount - 1})
    assert refused(short, one, claims=lambda _: told).startswith("credit of round 1: expected")


def test_of_a_jackpot_whole_shares_may_have_expired() -> None:
    one = a_round_with(jackpots=True)
    told, amount = nothing_claimed(one)
    ledger = one.bundle["ledger"]
    share, winners = int(ledger["jackpotPaid"]) // int(ledger["k"]), int(ledger["k"])
    assert share > 0
    for shares in (0, 1, winners):
        two = make_round(2, previous=one, expired={1: amount + shares * share})
        assert checked(two, one, claims=lambda _: told)[CREDIT]
    half = make_round(2, previous=one, expired={1: amount + share - 1})
    assert refused(half, one, claims=lambda _: told).startswith("credit of round 1: expected")
    beyond = make_round(2, previous=one, expired={1: amount + (winners + 1) * share})
    assert "more than the round paid in prizes" in refused(beyond, one, claims=lambda _: told)


def test_without_claims_a_credit_is_bounded_and_taken_as_stated() -> None:
    one = a_round_with(jackpots=False)
    _, amount = nothing_claimed(one)
    assert not checked(make_round(2, previous=one, expired={1: amount}), one)[CREDIT]
    assert "more than the round paid" in refused(make_round(2, previous=one, expired={1: amount + 1}), one)


def test_a_credit_of_a_round_that_is_not_offered_is_taken_as_stated() -> None:
    one = make_round(1)
    two = make_round(2, previous=one)
    three = make_round(3, previous=two, expired={1: 5})
    checks = checked(three, two)
    assert checks["pool0 and reserve0"]
    assert not checks[CREDIT]


def test_one_round_is_not_credited_twice() -> None:
    one = a_round_with(jackpots=False)
    told, amount = nothing_claimed(one)
    two = make_round(2, previous=one, expired={1: amount})
    three = make_round(3, previous=two)
    four = make_round(4, previous=three, expired={1: amount})
    again = refused(four, one, two, three, claims=lambda _: told)
    assert again == "credit of round 1: round 2 counted it already"
    once = make_round(4, previous=make_round(3, previous=make_round(2, previous=one)), expired={1: amount})
    earlier = [one, make_round(2, previous=one), make_round(3, previous=make_round(2, previous=one))]
    assert checked(once, *earlier, claims=lambda _: told)[CREDIT]
    assert not checked(once, one, earlier[2], claims=lambda _: told)[CREDIT], "round 2 could have counted it"


def test_a_credit_comes_from_the_round_that_the_hashes_lead_back_to() -> None:
    one = a_round_with(jackpots=False)
    two = make_round(2, previous=one)
    other = next(made for salt in range(200, 400) if (made := make_round(1, salt=salt)).bundle["winnerCounts"][4] > 1)
    told, amount = nothing_claimed(other)
    three = make_round(3, previous=two, expired={1: amount})
    assert refused(three, other, two, claims=lambda _: told).startswith("previousRoundHash of round 2: expected")


def test_behind_a_round_that_failed_unsealed_a_credit_is_taken_as_stated() -> None:
    one = a_round_with(jackpots=False)
    told, amount = nothing_claimed(one)
    two = make_failed_round(2, one)
    three = make_round(3, previous=Round(two.bundle | {"ledger": one.bundle["ledger"]}), expired={1: amount})
    assert not checked(three, one, two, claims=lambda _: told)[CREDIT], "no hash leads back to round 1"


def test_a_list_of_other_winners_than_the_round_had_is_found() -> None:
    one = a_round_with(jackpots=False)
    told, amount = nothing_claimed(one)
    fewer = [*told[:4], TierClaims(told[4].winners + 1, 0)]
    two = make_round(2, previous=one, expired={1: amount})
    assert refused(two, one, claims=lambda _: fewer).startswith("winners in tier 5 of round 1: expected")


def test_a_failed_round_gives_no_credit() -> None:
    one = make_round(1)
    two = make_failed_round(2, one)
    carried = Round(two.bundle | {"ledger": one.bundle["ledger"]})
    three = make_round(3, previous=carried, expired={2: 5})
    assert refused(three, two, one) == "credit of round 2: round 2 is FAILED and paid no prizes"


def test_a_credit_comes_from_a_round_before() -> None:
    one = make_round(1)
    assert refused(make_round(2, previous=one, expired={2: 5}), one).startswith("reserveCredits: round 2 is not before")


def test_a_reserve_without_its_credit_and_a_credit_without_its_money_are_found() -> None:
    one = make_round(1)
    two = make_round(2, previous=one, expired={1: 5})
    assert refused(Round(two.bundle | {"reserveCredits": []}, two.lines), one).startswith("ledger.reserve0: expected")
    poor = make_round(2, previous=one)
    wrong = Round(poor.bundle | {"reserveCredits": [{"roundId": 1, "amount": "5"}]}, poor.lines)
    assert refused(wrong, one).startswith("ledger.reserve0: expected")


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        [{"roundId": 1}],
        [{"roundId": 1, "amount": 5}],
        [{"roundId": 1, "amount": "0"}],
        [{"roundId": 1, "amount": "-5"}],
        [{"roundId": 0, "amount": "5"}],
        [{"roundId": 1, "amount": "5", "why": "x"}],
        [{"roundId": 1, "amount": "5"}, {"roundId": 1, "amount": "5"}],
        [{"roundId": 2, "amount": "5"}, {"roundId": 1, "amount": "5"}],
    ],
)
def test_credits_are_a_list_in_order_each_of_something(wrong: Any) -> None:
    with pytest.raises(Invalid, match="reserveCredits"):
        parse_bundle(make_round(1).bundle | {"reserveCredits": wrong})


def test_a_drawn_round_states_its_credits_and_no_earlier_one_does() -> None:
    made = make_round(1)
    assert refused(Round(made.bundle | {"reserveCredits": None}, made.lines)).startswith("reserveCredits: missing")
    failed = make_failed_round(1)
    assert refused(Round(failed.bundle | {"reserveCredits": []})).startswith("reserveCredits: expected null")


def test_from_files_the_verifier_says_what_it_takes_as_stated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = make_round(1)
    two = make_round(2, previous=one, expired={1: 5})
    (tmp_path / "one.json").write_text(json.dumps(one.bundle), encoding="utf-8")
    path = two.save(tmp_path)
    assert main([str(path), "--tickets", str(tmp_path), "--previous", str(tmp_path / "one.json")]) == 0
    assert f"– {CREDIT}: taken as stated" in capsys.readouterr().out
