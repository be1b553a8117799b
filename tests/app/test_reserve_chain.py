"""From one round's reserve to the next: what expired in between is published, and a stranger finds it right."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest

from models.rounds import request_abort
from models.session import transaction
from protocol.checks import NotVerified
from protocol.credits import TierClaims
from protocol.lifecycle import State
from protocol.proof import check_bundle
from protocol.verify_sources import claims_page
from tasks.expiring import expire_next
from tests.app.conftest import Caller
from tests.factories import (
    a_round,
    balances,
    let_claims_end,
    move_clock_to,
    rows,
    some_operators,
    take_part,
    take_to,
    work,
)

pytestmark = pytest.mark.usefixtures("generous")


def sold(operators: Sequence[str], seed: int, tickets: int = 25) -> int:
    round_id = a_round(operators)
    take_part(round_id, operators, tickets, 10 * seed)
    return round_id


def expire(round_id: int) -> int:
    """Let a round's prizes expire; what they come to."""
    let_claims_end(round_id)
    with transaction() as session:
        told = expire_next(session)
    assert told is not None
    amount = told["amount_usdc"]
    assert isinstance(amount, int)
    return amount


def bundle_of(anybody: Caller, round_id: int) -> dict[str, Any]:
    found: dict[str, Any] = anybody.get(f"/api/public/rounds/{round_id}/proof").get_json()
    return found


def verified(anybody: Caller, bundle: dict[str, Any]) -> dict[str, bool]:
    """Every check of a bundle, as a stranger makes them: its name, and whether it was proved."""

    def tickets(operator_id: str) -> Iterator[bytes]:
        body = anybody.get(f"/api/public/rounds/{bundle['roundId']}/tickets/{operator_id}").get_data()
        yield from gzip.decompress(body).splitlines()

    def claims(round_id: int) -> list[TierClaims]:
        page = claims_page(anybody.get(f"/api/public/sub-prizes/{round_id}?limit=10000").get_json())
        return [TierClaims(len(tier), sum(not claimed for *_, claimed in tier)) for tier in page]

    checks = check_bundle(bundle, tickets, lambda round_id: bundle_of(anybody, round_id), claims)
    return {check.name: check.proved for check in checks}


def test_a_round_begins_with_what_the_last_one_left_and_what_expired_since(
    anybody: Caller, operator: Callable[[str], Caller]
) -> None:
    operators = some_operators(2)
    first = sold(operators, 1)
    take_to(first, State.CLOSED)
    expired = expire(first)
    for seed in (2, 3):
        failed = sold(operators, seed)
        with transaction() as session:
            request_abort(session, failed, "flood")
        work(failed)
    second = sold(operators, 4)
    take_to(second, State.SETTLED)
    bundle = bundle_of(anybody, second)
    assert bundle["reserveCredits"] == [{"roundId": first, "amount": str(expired)}]
    left = bundle_of(anybody, first)["ledger"]
    assert int(bundle["ledger"]["reserve0"]) == int(left["reserve1"]) + expired
    assert bundle["ledger"]["pool0"] == left["pool1"]
    checks = verified(anybody, bundle)
    assert checks["pool0 and reserve0"]
    assert not checks[f"credit of round {first} to the reserve"], "no hash leads back over the rounds that failed"
    third = sold(operators, 5)
    take_to(third, State.SETTLED)
    assert bundle_of(anybody, third)["reserveCredits"] == [], "counted once"
    assert verified(anybody, bundle_of(anybody, third))["pool0 and reserve0"]


def test_what_expires_between_draw_and_settlement_is_the_next_rounds(anybody: Caller) -> None:
    operators = some_operators(2)
    first, second, third = (sold(operators, seed) for seed in (1, 2, 3))
    take_to(first, State.CLOSED)
    assert bundle_of(anybody, second)["reserveCredits"] is None
    take_to(second, State.DRAWN)
    expired = expire(first)
    take_to(second, State.CLOSED)
    both = [{"roundId": first, "amount": str(expired)}, {"roundId": second, "amount": str(expire(second))}]
    take_to(third, State.CLOSED)
    assert bundle_of(anybody, second)["reserveCredits"] == []
    assert bundle_of(anybody, third)["reserveCredits"] == both
    for round_id in (second, third):
        assert verified(anybody, bundle_of(anybody, round_id))["pool0 and reserve0"]


def test_a_credit_that_is_not_what_nobody_claimed_is_found(anybody: Caller) -> None:
    operators = some_operators(2)
    first, second = sold(operators, 1), sold(operators, 2)
    take_to(first, State.CLOSED)
    expired = expire(first)
    take_to(second, State.CLOSED)
    bundle = bundle_of(anybody, second)
    for wrong in (
        [{"roundId": first, "amount": str(expired + 1)}],
        [{"roundId": first, "amount": str(expired - 1)}],
        [],
        [{"roundId": second, "amount": str(expired)}],
    ):
        with pytest.raises(NotVerified, match=r"reserve0|reserveCredits"):
            verified(anybody, bundle | {"reserveCredits": wrong})
    # Somebody else's claim is made undone: the sum is right, what it stands for is not.
    rows("UPDATE winners SET claimed_at = claim_deadline WHERE round_id = :r AND tier = 1 RETURNING tier", r=first)
    with pytest.raises(NotVerified, match=f"credit of round {first}: expected"):
        verified(anybody, bundle)


def test_a_prize_reported_late_is_shown_as_not_claimed(operator: Callable[[str], Caller], anybody: Caller) -> None:
    seller = operator("a")
    round_id = sold([seller.id], 1)
    take_to(round_id, State.CLOSED)
    [ticket_id, tier] = rows("SELECT ticket_id, tier FROM winners WHERE tier > 0 ORDER BY 2, 1")[0]
    expire(round_id)
    report = {"roundId": round_id, "payouts": [{"ticketId": ticket_id, "tier": tier}]}
    answer = seller.post("/api/operator/payouts", report).get_json()
    assert (answer["accepted"], answer["late"]) == (1, 1)
    answer = seller.post("/api/operator/payouts", report).get_json()
    assert (answer["accepted"], answer["alreadyClaimed"]) == (0, 1)
    tiers = anybody.get(f"/api/public/sub-prizes/{round_id}").get_json()["tiers"]
    assert {won["claimed"] for listed in tiers for won in listed["winners"]} == {False}


def test_the_books_balance_at_any_moment_while_rounds_settle_and_prizes_expire(
    admin: Callable[[str], Caller],
) -> None:
    operators = some_operators(3)
    treasurer = admin("treasurer")
    done, sums = Event(), []

    def read() -> int:
        looks = 0
        client = Caller(treasurer.client.application.test_client(), treasurer.headers)
        while not done.is_set() or looks < 3:
            told = client.get("/api/admin/ledger/accounts").get_json()["accounts"]
            sums.append(sum(int(one["balanceUsdc"]) for one in told))
            page = client.get("/api/admin/ledger?limit=20").get_json()["postings"]
            sums.extend(sum(int(entry["amountUsdc"]) for entry in posting["entries"]) for posting in page)
            looks += 1
        return looks

    def play(seed: int) -> None:
        round_id = sold(operators, seed, tickets=8)
        move_clock_to(round_id, "close_at")
        work(round_id)

    def expire_what_is_due() -> None:
        while not done.is_set():
            rows("UPDATE expiries SET expires_at = now() WHERE expired_at IS NULL RETURNING round_id")
            with transaction() as session:
                expire_next(session)

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read), pool.submit(read)]
        expiring = pool.submit(expire_what_is_due)
        try:
            for seed in range(4):
                play(seed)
        finally:
            done.set()
        assert all(reader.result(60) >= 3 for reader in readers)
        expiring.result(60)
    assert set(sums) == {0}
    assert rows("SELECT count(*) FROM rounds WHERE state = 'CLOSED'") == [(4,)]
    assert rows("SELECT count(*) FROM expiries WHERE expired_at IS NOT NULL")[0][0] >= 1
    # And the reserve is what the chain of rounds says, whatever was expired in between them.
    [(left,)] = rows("SELECT (terms ->> 'reserve1')::bigint FROM draws ORDER BY round_id DESC LIMIT 1")
    [(waiting,)] = rows("SELECT coalesce(sum(amount), 0)::bigint FROM expiries WHERE counted_in IS NULL")
    assert balances().get("reserve", 0) == left + waiting
