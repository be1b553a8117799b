"""Recomputing a round: what holds, and what is found out."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from protocol import chain
from protocol.checks import NotVerified
from protocol.proof import check_bundle
from protocol.rules import Rules
from protocol.settlement import Terms
from tests.protocol.rounds import SMALL, Round, before_the_draw, make_failed_round, make_round


def _check(made: Round, *earlier: Round) -> list[str]:
    bundles = {row.bundle["roundId"]: row.bundle for row in earlier}
    return [check.name for check in check_bundle(made.bundle, lambda name: made.lines[name], bundles.get)]


def _difference(made: Round, *earlier: Round) -> str:
    with pytest.raises(NotVerified) as difference:
        _check(made, *earlier)
    return difference.value.message


def _changed(made: Round, **fields: Any) -> Round:
    return Round(copy.deepcopy(made.bundle) | fields, {name: list(lines) for name, lines in made.lines.items()})


@pytest.mark.parametrize(
    "made",
    [
        make_round(),
        make_round(state="SETTLED"),
        make_round(mode="drand"),
        make_round(nonces=()),
        make_round(nonces=("opA", "opB")),
        make_round(excluded={"opB": "missed_escrow", "opC": "missed_sealing"}),
        make_round(excluded={"opC": "manifest_mismatch"}),
        make_round(tickets={"opA": 1, "opB": 0}),
        make_round(rules=Rules()),
        make_round(tickets={f"op{number}": number for number in range(1, 30)}, nonces=("op7",)),
    ],
)
def test_an_honest_round_is_verified(made: Round) -> None:
    names = _check(made)
    for name in (
        "winnerCounts",
        "ledger",
        "winnersRoot",
        "settlementHash",
        "roundHash",
        "pool0 and reserve0",
    ):
        assert name in names


@pytest.mark.parametrize("salt", range(30))
def test_rounds_with_all_sorts_of_outcomes_are_verified(salt: int) -> None:
    assert "roundHash" in _check(make_round(salt=salt))


def test_the_outcomes_tried_include_jackpots_rollovers_and_prizes_cut() -> None:
    ledgers = [make_round(salt=salt).bundle["ledger"] for salt in range(30)]
    terms = [Terms(**{key: int(value) for key, value in ledger.items()}) for ledger in ledgers]
    assert {row.k > 0 for row in terms} == {True, False}
    assert {row.L > row.A for row in terms} == {True, False}


def test_what_is_only_stated_is_reported_as_such() -> None:
    def stated(made: Round, *, with_tickets: bool = True) -> list[str]:
        tickets = (lambda name: made.lines[name]) if with_tickets else None
        return [check.name for check in check_bundle(made.bundle, tickets, None) if not check.proved]

    assert stated(make_round()) == []
    assert stated(make_round(mode="drand")) == ["randomness of the beacon"]
    assert stated(make_round(2)) == ["previousRoundHash, pool0 and reserve0"]
    assert stated(make_round(), with_tickets=False) == ["winnerCounts", "winnersRoot"]


def test_a_nonce_that_was_committed_to_and_not_revealed_is_reported() -> None:
    made = make_round(nonces=("opA", "opB"), withheld=("opB",))
    assert "nonce of opB not revealed" in _check(made)
    assert "drawSeed" in _difference(_changed(made, seed=make_round(nonces=("opA", "opB")).bundle["seed"]))


def test_a_nonce_of_an_operator_that_is_not_in_the_draw_is_found() -> None:
    made = make_round(nonces=("opA", "opB"), withheld=("opB",), excluded={"opB": "missed_escrow"})
    assert "nonce of opB not revealed" not in _check(made), "nobody waits for it"
    counted = make_round(nonces=("opA", "opB"), excluded={"opB": "missed_escrow"})
    assert _difference(counted) == "nonce of opB: its operator is not in the draw"


@pytest.mark.parametrize("state", ["SEALED", "ESCROWED"])
def test_a_round_not_drawn_yet_is_checked_as_far_as_it_is_public(state: str) -> None:
    names = _check(before_the_draw(make_round(), state))
    assert "chainedAnchorHash" in names
    assert ("effectiveManifestHash" in names) == (state == "ESCROWED")
    assert "drawSeed" not in names


def test_a_drawn_round_is_checked_before_it_is_settled() -> None:
    drawn = make_round(state="DRAWN")
    assert "winnersRoot" in _check(drawn)
    bare = _changed(drawn, winnersRoot=None, ledger=None)
    assert "winnerCounts" in _check(bare)
    assert "winnersRoot" in _difference(_changed(drawn, ledger=None))


def test_an_open_round_has_hardly_anything_to_check() -> None:
    made = before_the_draw(make_round(nonces=()), "SEALED")
    hidden = dict.fromkeys(["sealedAt", "previousRoundHash", "fullManifestHash", "chainedAnchorHash"])
    manifests = [row | {"ticketsRoot": None} for row in made.bundle["manifests"]]
    assert _check(_changed(made, **hidden, state="OPEN", manifests=manifests)) == [
        "bundle has every field, each of its type", "rulesHash", "manifests (2)",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("field", "state"),
    [
        ("sealedAt", "SEALED"),
        ("chainedAnchorHash", "SEALED"),
        ("effectiveManifestHash", "ESCROWED"),
        ("drawSeed", "DRAWN"),
        ("numbers", "DRAWN"),
        ("winnerCounts", "DRAWN"),
        ("ledger", "SETTLED"),
        ("settlementHash", "SETTLED"),
        ("roundHash", "CLOSED"),
    ],
)
def test_what_a_state_promises_cannot_be_left_out(field: str, state: str) -> None:
    assert _difference(_changed(make_round(state=state), **{field: None})) == (
        f"{field}: missing, though the round is {state}"
    )


def test_what_cannot_be_there_yet_cannot_be_stated() -> None:
    assert "roundHash: expected null" in _difference(_changed(make_round(state="DRAWN"), roundHash="00" * 32))
    assert "failureReason: expected null" in _difference(_changed(make_round(), failureReason="none"))


def test_a_different_text_of_honest_limits_is_found() -> None:
    assert "honestLimits" in _difference(_changed(make_round(), honestLimits=["trust us"]))


def test_the_wrong_kind_of_beacon_for_the_mode_is_found() -> None:
    beacon = make_round(mode="drand").bundle["beacon"]
    assert _difference(_changed(make_round(), beacon=beacon)) == "beacon: does not fit mode commit-reveal"
    drand = make_round(mode="drand")
    assert _difference(_changed(drand, beacon=None)) == "beacon: does not fit mode drand"
    later = drand.bundle["seed"]["beacon"] | {"round": 5000}
    assert "seed.beacon" in _difference(_changed(drand, seed=drand.bundle["seed"] | {"beacon": later}))


def test_an_exclusion_that_contradicts_the_manifests_is_found() -> None:
    for reason, operator_id in (("missed_sealing", "opB"), ("manifest_mismatch", "opB"), ("missed_escrow", "opX")):
        made = _changed(make_round(), exclusions=[{"operatorId": operator_id, "reason": reason}])
        assert _difference(made) == f"exclusion of {operator_id}: {reason} contradicts the manifests"
    afterwards = make_round(excluded={"opB": "manifest_mismatch"})
    assert _difference(afterwards).startswith("exclusion of opB"), "its manifest was right when it sealed"


def test_a_manifest_that_says_something_else_than_the_bundle_is_found() -> None:
    for key, wrong in (("ticketCount", 41), ("ticketsRoot", "00" * 32), ("nonceCommit", "00" * 32)):
        made = _changed(make_round())
        made.bundle["manifests"][0][key] = wrong
        assert f"{key} " in _difference(made)
        assert "opA" in _difference(made)


def _swap(old: bytes, new: bytes) -> Any:
    return lambda lines: [line.replace(old, new) for line in lines]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda lines: lines[:-1], "tickets of opA: expected 40 tickets, found 39"),
        (lambda lines: [], "tickets of opA: expected 40 tickets, found 0"),
        (lambda lines: lines[:5] + lines[6:], "expected 40 tickets, found 39"),
        (
            lambda lines: [*lines, lines[-1].replace(b"t-000039", b"t-000040")],
            "expected 40 tickets, found more",
        ),
        (lambda lines: [lines[1], lines[0], *lines[2:]], "line 2: ticket t-000000 is out of order"),
        (lambda lines: lines[:2] + lines[1:], "line 3: ticket t-000001 stands twice"),
        (lambda lines: lines[::-1], "line 2: ticket t-000038 is out of order"),
        (_swap(b'"isQuickPick":true', b'"isQuickPick":false'), "ticketsRoot of opA: expected"),
        (_swap(b"t-000039", b"t-000040"), "ticketsRoot of opA: expected"),
        (_swap(b"opA", b"opB"), "line 1: operatorId is 'opB'"),
        (_swap(b'"roundId":1', b'"roundId":2'), "line 1: roundId is 2"),
        (_swap(b":", b": "), "line 1: not canonical JSON"),
    ],
)
def test_tickets_forged_missing_added_swapped_or_repeated_are_found(change: Any, named: str) -> None:
    made = _changed(make_round())
    made.lines["opA"] = change(made.lines["opA"])
    assert named in _difference(made)


def test_swapping_the_tickets_of_two_operators_is_found() -> None:
    made = _changed(make_round(tickets={"opA": 3, "opB": 3}))
    made.lines = {"opA": made.lines["opB"], "opB": made.lines["opA"]}
    assert "tickets of opA: line 1: operatorId is 'opB', expected 'opA'" in _difference(made)


def test_swapping_numbers_between_two_tickets_is_found() -> None:
    made = _changed(make_round())
    first, second = made.lines["opA"][:2]
    made.lines["opA"][:2] = [
        second.replace(b"t-000001", b"t-000000"),
        first.replace(b"t-000000", b"t-000001"),
    ]
    assert "ticketsRoot of opA" in _difference(made)


def test_a_ledger_with_a_term_too_many_or_too_few_is_found() -> None:
    made = make_round()
    assert "ledger.tip" in _difference(_changed(made, ledger=made.bundle["ledger"] | {"tip": "0"}))
    short = {key: value for key, value in made.bundle["ledger"].items() if key != "feeKept"}
    assert "ledger.feeKept: expected" in _difference(_changed(made, ledger=short))


LONG_ODDS = replace(SMALL, odds_range=100_000)
"""Nobody wins the jackpot, so that there is something to carry over."""


def _history() -> Iterator[Round]:
    """Round 1 settled, round 2 failed, round 3 settled, round 4 failed, round 5 settled."""
    previous: Round | None = None
    for round_id in range(1, 6):
        made = make_failed_round(round_id, previous) if round_id in (2, 4) else make_round(round_id, previous=previous)
        yield made
        if round_id in (2, 4):
            assert previous
            # The failed round hands on its hash; the balances come from the settled one before it.
            previous = Round(made.bundle | {"ledger": previous.bundle["ledger"]})
        else:
            previous = made


def test_balances_are_followed_back_over_failed_rounds_to_the_last_settled_one() -> None:
    one, two, three, four, five = _history()
    assert int(three.bundle["ledger"]["reserve0"]) + int(three.bundle["ledger"]["pool0"]) > 0
    for made, earlier in ((one, []), (three, [one, two]), (five, [three, four])):
        assert "previousRoundHash" in _check(made, *earlier)
    assert "round 3, before round 4 that failed unsealed" in _check(five, three, four), "no hash binds it"
    assert "pool0 and reserve0" in _check(five, three, four)
    assert "previousRoundHash, pool0 and reserve0" in _check(five, four), "round 3 was not offered"


def test_a_first_round_after_failures_only_starts_from_nothing() -> None:
    one = make_failed_round(1)
    two = make_round(2, previous=one)
    assert "pool0 and reserve0" in _check(two, one)


def test_balances_that_are_not_those_carried_over_are_found() -> None:
    one = make_round(1)
    richer = Round(one.bundle | {"ledger": one.bundle["ledger"] | {"pool1": "777", "reserve1": "5"}})
    two = make_round(2, previous=richer)
    assert _difference(two, one).startswith("ledger.pool0: expected")
    assert _difference(make_round(1, previous=Round(richer.bundle | {"roundHash": chain.GENESIS}))) == (
        "ledger.pool0: expected 0, found 777"
    )


def test_another_previous_round_than_the_one_anchored_is_found() -> None:
    one, other = make_round(1), make_round(1, salt=1)
    two = make_round(2, previous=one)
    assert _difference(two, other).startswith("previousRoundHash: expected")
    assert _difference(make_round(1, previous=Round(one.bundle | {"ledger": None}))).startswith("previousRoundHash")


def test_a_previous_round_that_is_itself_wrong_or_unfinished_is_found() -> None:
    one = make_round(1)
    two = make_round(2, previous=one)
    assert _difference(two, _changed(one, rulesHash="00" * 32)).startswith("round 1: rulesHash: expected")
    assert _difference(two, make_round(1, state="DRAWN")).startswith("round 1: roundHash: missing")
    with pytest.raises(NotVerified, match="round 1: roundId: expected 1, found 3"):
        list(check_bundle(two.bundle, None, lambda _: make_round(3).bundle))


def test_the_rules_of_the_round_decide_and_not_the_defaults() -> None:
    assert make_round(rules=SMALL).bundle["rulesHash"] != Rules().hash
    assert _difference(_changed(make_round(), rules=Rules().as_hashed())).startswith("rulesHash: expected")
