"""Prizes that nobody claims in time: they return to the reserve once, to the micro-USDC, whatever dies or races."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier, Event
from typing import Any

import pytest
from sqlalchemy import text

from models.chores import Name
from models.claims import claim_prizes
from models.ledger import EXTERNAL, balance, operator_account, post
from models.participation import participation
from models.session import transaction
from protocol.lifecycle import State
from tasks import expiring
from tasks.chores import do_chore
from tests.dying import deaths
from tests.factories import (
    GENEROUS,
    PRICE,
    a_played_round,
    a_round,
    an_operator,
    balances,
    fund,
    let_claims_end,
    move_clock_to,
    rows,
    some_operators,
    take_part,
    take_to,
    the_round,
    work,
)
from tests.polling import until

pytestmark = pytest.mark.usefixtures("generous")

EXPIRE = Name.EXPIRE_PRIZES.value


def expire() -> None:
    """Do what is due, as a worker does."""
    with transaction() as session:
        session.execute(text("UPDATE chores SET due_at = now() WHERE id = :name"), {"name": EXPIRE})
    while do_chore(EXPIRE):
        pass


def prizes(round_id: int, operator_id: str) -> list[tuple[str, int, int]]:
    """Ticket, tier and amount of every prize of an operator."""
    found = rows(
        "SELECT ticket_id, tier, prize_usdc FROM winners WHERE round_id = :r AND operator_id = :o ORDER BY 2, 1",
        r=round_id,
        o=operator_id,
    )
    return [(ticket_id, tier, amount) for ticket_id, tier, amount in found]


def claim(round_id: int, operator_id: str, wins: list[tuple[str, int, int]]) -> tuple[int, int]:
    """Report prizes as paid; how many were accepted, and how many of these late."""
    with transaction() as session:
        participation(session, round_id, operator_id)
        claimed = claim_prizes(session, round_id, operator_id, [(ticket_id, tier) for ticket_id, tier, _ in wins])
    return claimed.accepted, claimed.late


def worth(wins: list[tuple[str, int, int]]) -> int:
    return sum(amount for *_, amount in wins)


def posted(round_id: int) -> dict[str, int]:
    """What the round's expiry moved, by account."""
    return dict(
        rows(
            "SELECT account_id, amount FROM ledger_entries JOIN ledger_postings p ON p.id = posting_id "
            "WHERE reference = :name",
            name=f"expiry:{round_id}",
        )
    )


def everything() -> dict[str, Any]:
    return {
        "accounts": balances(),
        "expiries": rows("SELECT round_id, prizes, amount, expired_at IS NULL, counted_in FROM expiries ORDER BY 1"),
        "postings": rows("SELECT reference FROM ledger_postings ORDER BY 1"),
    }


def test_what_is_not_claimed_by_its_deadline_returns_to_the_reserve_and_the_rest_stays() -> None:
    first, second = operators = some_operators(2)
    round_id = a_played_round(operators, State.SETTLED, 40)
    mine, theirs = prizes(round_id, first), prizes(round_id, second)
    assert claim(round_id, first, mine[:-3]) == (len(mine) - 3, 0)
    before = balances()
    expire()
    assert balances() == before, "its time has not come"
    let_claims_end(round_id)
    expire()
    returned = {first: worth(mine[-3:]), second: worth(theirs)}
    assert posted(round_id) == {
        **{f"operator:{operator_id}": -amount for operator_id, amount in returned.items()},
        "reserve": sum(returned.values()),
    }
    after = balances()
    assert after["reserve"] == before.get("reserve", 0) + sum(returned.values())
    assert all(after[f"operator:{name}"] == before[f"operator:{name}"] - amount for name, amount in returned.items())
    assert sum(after.values()) == 0
    assert rows("SELECT prizes, amount, counted_in FROM expiries") == [(3 + len(theirs), sum(returned.values()), None)]
    expire()
    assert balances() == after, "once and not twice"


def test_commission_and_bonus_are_the_operators_and_stay() -> None:
    [seller] = operators = some_operators(1)
    round_id = a_played_round(operators, State.SETTLED, 40)
    [(terms,)] = rows("SELECT terms FROM draws")
    assert int(terms["bonusPaid"]) > 0
    let_claims_end(round_id)
    expire()
    kept = 10**12 - 40 * PRICE + int(terms["C"]) + int(terms["bonusPaid"])
    assert balances()[f"operator:{seller}"] == kept


def test_a_round_whose_prizes_were_all_claimed_moves_nothing() -> None:
    [seller] = operators = some_operators(1)
    round_id = a_played_round(operators, State.SETTLED, 40)
    claim(round_id, seller, prizes(round_id, seller))
    let_claims_end(round_id)
    before = balances()
    expire()
    assert (balances(), posted(round_id)) == (before, {})
    assert rows("SELECT prizes, amount FROM expiries") == [(0, 0)]


def test_a_round_that_nobody_won_has_nothing_to_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    hopeless = replace(GENEROUS, odds_range=10**9, ranges=(10**9,) * 5)
    monkeypatch.setattr("tasks.opening.current_rules", lambda cumulative: hopeless)
    a_played_round(some_operators(1), State.SETTLED, 40)
    assert rows("SELECT 1 FROM expiries") == []


def test_a_report_after_the_deadline_counts_as_late_and_its_money_returns_all_the_same() -> None:
    [seller] = operators = some_operators(1)
    round_id = a_played_round(operators, State.SETTLED, 40)
    early, late, later = prizes(round_id, seller)[:3]
    claim(round_id, seller, [early])
    let_claims_end(round_id)
    # One report comes before the expiry was worked off and one after it: the deadline decides, not the worker.
    assert claim(round_id, seller, [late]) == (1, 1)
    expire()
    returned = posted(round_id)["reserve"]
    assert returned == worth(prizes(round_id, seller)) - worth([early])
    assert claim(round_id, seller, [later]) == (1, 1)
    expire()
    assert posted(round_id)["reserve"] == returned
    assert rows("SELECT payouts_on_time, payouts_late FROM operators") == [(1, 2)]


def test_an_operator_that_put_the_prizes_into_escrow_owes_them_until_money_comes_in() -> None:
    poor = an_operator("a", funds=40 * PRICE)
    round_id = a_played_round([poor], State.SETTLED, 40)
    staked = a_round([poor])
    take_part(staked, [poor], balances()[f"operator:{poor}"] // PRICE, seed=9)
    take_to(staked, State.ESCROWED)
    left, owed = balances()[f"operator:{poor}"], worth(prizes(round_id, poor))
    assert left < owed
    let_claims_end(round_id)
    expire()
    assert posted(round_id) == {f"operator:{poor}": -owed, "reserve": owed}, "all of it, at once"
    assert balances()[f"operator:{poor}"] == left - owed < 0
    take_to(staked, State.SETTLED)
    [(released,)] = rows("SELECT (releases ->> 'op_a')::bigint FROM draws WHERE round_id = :r", r=staked)
    assert balances()[f"operator:{poor}"] == left - owed + released
    assert sum(balances().values()) == 0


def withdraw_everything(operator_id: str) -> None:
    own = operator_account(operator_id)
    with transaction() as session:
        held = balance(session, own)
        post(session, f"out:{operator_id}", "withdrawal", {own: -held, EXTERNAL: held})


def test_nobody_enters_a_draw_on_owed_money() -> None:
    operators = [poor, _] = [an_operator("a", funds=40 * PRICE), an_operator("b")]
    round_id = a_played_round(operators, State.SETTLED, 40)
    withdraw_everything(poor)
    let_claims_end(round_id)
    expire()
    owed = -balances()[f"operator:{poor}"]
    assert owed == worth(prizes(round_id, poor))
    waiting = a_round(operators)
    take_part(waiting, operators, tickets=1)
    move_clock_to(waiting, "sealing_deadline")
    for reference, amount, state in (
        ("nothing yet", 1, State.SEALED),
        ("nearly", owed + PRICE - 2, State.SEALED),
        ("enough", 1, State.ESCROWED),
    ):
        fund(poor, amount, reference)
        work(waiting)
        assert the_round(waiting).state is state
    assert balances()[f"operator:{poor}"] == 0


def test_killed_at_any_statement_nothing_happened_and_the_next_does_it_once() -> None:
    operators = some_operators(2)
    round_id = a_played_round(operators, State.SETTLED, 40)
    let_claims_end(round_id)
    with transaction() as session:
        session.execute(text("UPDATE chores SET due_at = now() WHERE id = :name"), {"name": EXPIRE})
    before = everything()
    assert deaths(lambda: do_chore(EXPIRE), lambda: everything() == before) >= 8
    done = everything()
    assert posted(round_id)["reserve"] == sum(worth(prizes(round_id, name)) for name in operators)
    expire()
    assert everything() == done


def test_many_workers_at_once_expire_each_round_once() -> None:
    operators = some_operators(2)
    played = [a_played_round(operators, State.SETTLED, 40, seed=seed) for seed in (0, 5, 9)]
    for round_id in played:
        let_claims_end(round_id)
    start = Barrier(6)

    def hand(_: int) -> None:
        start.wait()
        for _ in range(4):
            with transaction() as session:
                expiring.expire_next(session)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(hand, range(6)))
    assert [posted(round_id)["reserve"] for round_id in played] == [
        sum(worth(prizes(round_id, name)) for name in operators) for round_id in played
    ]
    assert sum(balances().values()) == 0


def test_a_report_that_is_being_written_at_the_deadline_is_waited_for() -> None:
    [seller] = operators = some_operators(1)
    round_id = a_played_round(operators, State.SETTLED, 40)
    wins = prizes(round_id, seller)
    reported, go_on = Event(), Event()

    def report() -> tuple[int, int]:
        with transaction() as session:
            participation(session, round_id, seller)
            claimed = claim_prizes(session, round_id, seller, [win[:2] for win in wins[:5]])
            reported.set()
            assert go_on.wait(60)
        return claimed.accepted, claimed.late

    with ThreadPoolExecutor(2) as pool:
        reporting = pool.submit(report)
        assert reported.wait(60)
        with transaction() as session:
            # The deadline passes while the report is not committed yet.
            session.execute(text("UPDATE expiries SET expires_at = clock_timestamp()"))
        expired = pool.submit(expire)
        until(lambda: rows("SELECT FROM pg_locks WHERE NOT granted"), 60)
        go_on.set()
        assert reporting.result(60) == (5, 0)
        expired.result(60)
    assert posted(round_id)["reserve"] == worth(wins) - worth(wins[:5])


def test_reports_that_race_with_the_deadline_leave_one_outcome_for_each_prize() -> None:
    first, second = operators = some_operators(2)
    for seed in range(2):
        round_id = a_played_round(operators, State.SETTLED, 40, seed=seed * 2)
        with transaction() as session:
            session.execute(
                text(
                    "WITH soon AS (SELECT clock_timestamp() + interval '0.15 seconds' AS at), "
                    "moved AS (UPDATE winners SET claim_deadline = at FROM soon WHERE round_id = :r) "
                    "UPDATE expiries SET expires_at = at FROM soon WHERE round_id = :r"
                ),
                {"r": round_id},
            )
        start = Barrier(5)

        def report(operator_id: str, part: int, round_id: int = round_id, start: Barrier = start) -> int:
            start.wait()
            accepted = 0
            for win in prizes(round_id, operator_id)[part::2]:
                accepted += claim(round_id, operator_id, [win])[0]
            return accepted

        def worker(start: Barrier = start, round_id: int = round_id) -> None:
            start.wait()
            while rows("SELECT FROM expiries WHERE expired_at IS NULL AND round_id = :r", r=round_id):
                expire()

        with ThreadPoolExecutor(5) as pool:
            busy = [pool.submit(report, name, part) for name in operators for part in (0, 1)]
            done = pool.submit(worker)
            assert sum(each.result(100) for each in busy) == len(prizes(round_id, first) + prizes(round_id, second))
            done.result(100)
        for operator_id in operators:
            [(in_time, too_late)] = rows(
                "SELECT coalesce(sum(prize_usdc) FILTER (WHERE claimed_at <= claim_deadline), 0)::bigint, "
                "coalesce(sum(prize_usdc) FILTER (WHERE claimed_at > claim_deadline), 0)::bigint "
                "FROM winners WHERE round_id = :r AND operator_id = :o",
                r=round_id,
                o=operator_id,
            )
            assert in_time + too_late == worth(prizes(round_id, operator_id))
            assert posted(round_id).get(f"operator:{operator_id}", 0) == -too_late
    assert sum(balances().values()) == 0


def test_the_log_says_what_expired_and_who_owes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    poor = an_operator("a", funds=40 * PRICE)
    round_id = a_played_round([poor], State.SETTLED, 40)
    withdraw_everything(poor)
    let_claims_end(round_id)
    expire()
    owed = worth(prizes(round_id, poor))
    told = {record.message: record for record in caplog.records}
    assert told["an operator owes prizes"].owed_usdc == owed  # type: ignore[attr-defined]
    assert told["chore done"].amount_usdc == owed  # type: ignore[attr-defined]
    assert told["chore done"].round == round_id  # type: ignore[attr-defined]


def test_a_round_settled_after_its_own_deadline_gives_the_days_anew() -> None:
    [seller] = operators = some_operators(1)
    round_id = a_played_round(operators, State.DRAWN, 40)
    rows("UPDATE winners SET claim_deadline = now() - interval '1 day' RETURNING tier")
    take_to(round_id, State.SETTLED)
    assert rows(
        "SELECT DISTINCT w.claim_deadline = e.expires_at, round(extract(epoch FROM expires_at - now()) / 86400) "
        "FROM winners w, expiries e"
    ) == [(True, 90)]
    expire()
    assert posted(round_id) == {}
    assert claim(round_id, seller, prizes(round_id, seller)[:1]) == (1, 0)
