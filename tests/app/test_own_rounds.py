"""A round from the side of one of its operators, and what money it has meanwhile: from the invitation to the claims."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from protocol.lifecycle import State
from protocol.seed import nonce_commit
from protocol.tickets import ticket_line, tickets_root
from protocol.timestamps import format_timestamp
from tests.app.conftest import Caller, assert_error
from tests.factories import (
    PRICE,
    STAGES,
    a_round,
    fund,
    manifest,
    move_clock_to,
    rows,
    some_tickets,
    submit,
    take_to,
    the_round,
    work,
)

NONCE = b"\x07" * 32
UNDECIDED = {"manifestHash": None, "ticketsRoot": None, "claimDeadline": None, "failureReason": None}


def seen(operator: Caller, round_id: int) -> dict[str, Any]:
    answer = operator.get(f"/api/operator/rounds/{round_id}")
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.get_json()
    return body


def held(operator: Caller) -> tuple[int, int]:
    body = operator.get("/api/operator/balance").get_json()
    assert body["operatorId"] == operator.id
    return int(body["balanceUsdc"]), int(body["inEscrowUsdc"])


@pytest.mark.usefixtures("generous")
def test_an_operator_follows_its_own_part_from_invitation_to_claims(operator: Callable[..., Caller]) -> None:
    one, other = operator("a", funds=0), operator("b")
    round_id = a_round([one.id, other.id])
    fresh = seen(one, round_id)
    row = the_round(round_id)
    names = ("sealAt", "sealingDeadline", "escrowDeadline", "scheduledDrawTime", "settleAt", "closeAt")
    assert {name: fresh[name] for name in names} == {
        name: format_timestamp(getattr(row, stage)) for name, stage in zip(names, STAGES, strict=True)
    }
    assert fresh.items() >= {**UNDECIDED, "id": round_id, "state": "OPEN", "rulesHash": row.rules_hash}.items()
    assert (fresh["ticketCount"], fresh["nonceCommitted"], fresh["nonceRevealed"]) == (0, False, False)
    assert (fresh["escrow"], fresh["excludedReason"]) == ({"requiredUsdc": "0", "depositedUsdc": None}, None)

    tickets = some_tickets(40, ranges=(3, 4, 4, 3, 3, 2))
    submit(round_id, one.id, tickets)
    manifest(round_id, one.id, nonceCommit=nonce_commit(round_id, one.id, NONCE))
    submit(round_id, other.id, some_tickets(2, ranges=(3, 4, 4, 3, 3, 2)))
    manifest(round_id, other.id)
    required = str(40 * PRICE)
    sold = seen(one, round_id)
    assert (sold["ticketCount"], sold["ticketsRoot"], sold["nonceCommitted"]) == (40, None, True)
    assert sold["manifestHash"] == rows("SELECT manifest_hash FROM manifests WHERE operator_id = 'op_a'")[0][0]
    assert sold["escrow"] == {"requiredUsdc": required, "depositedUsdc": None}

    take_to(round_id, State.SEALED)
    lines = [ticket_line(round_id, one.id, *ticket) for ticket in sorted(tickets)]
    assert seen(one, round_id)["ticketsRoot"] == tickets_root(lines)
    assert one.post("/api/operator/nonce", {"roundId": round_id, "nonce": NONCE.hex()}).status_code == 200
    assert (seen(one, round_id)["nonceRevealed"], seen(other, round_id)["nonceRevealed"]) == (True, False)
    assert (held(one), held(other)) == ((0, 0), (10**12 - 2 * PRICE, 2 * PRICE))

    fund(one.id, 50 * PRICE)
    work(round_id)
    assert seen(one, round_id)["escrow"] == {"requiredUsdc": required, "depositedUsdc": required}
    assert held(one) == (10 * PRICE, 40 * PRICE)
    take_to(round_id, State.DRAWN)
    assert held(one) == (10 * PRICE, 40 * PRICE)
    take_to(round_id, State.SETTLED)
    assert held(one)[1] == 0
    ends = rows("SELECT max(claim_deadline) FROM winners")[0][0]
    assert seen(one, round_id)["claimDeadline"] == format_timestamp(ends)


def test_who_is_excluded_reads_why_and_what_a_failed_round_gave_back(operator: Callable[..., Caller]) -> None:
    sealed, poor, idle = operator("a"), operator("b", funds=0), operator("c")
    round_id = a_round([sealed.id, poor.id, idle.id])
    for each in (sealed, poor):
        submit(round_id, each.id, some_tickets(3))
        manifest(round_id, each.id)
    take_to(round_id, State.SEALED)
    move_clock_to(round_id, "escrow_deadline")
    work(round_id)
    assert [seen(each, round_id)["excludedReason"] for each in (sealed, poor, idle)] == [
        None,
        "missed_escrow",
        "missed_sealing",
    ]
    assert seen(poor, round_id)["escrow"] == {"requiredUsdc": str(3 * PRICE), "depositedUsdc": None}
    assert seen(idle, round_id)["escrow"] == {"requiredUsdc": None, "depositedUsdc": None}
    assert seen(poor, round_id)["ticketsRoot"] is not None
    assert held(sealed) == (10**12 - 3 * PRICE, 3 * PRICE)

    fail(round_id)
    assert seen(sealed, round_id)["failureReason"] == "A drill"
    assert held(sealed) == (10**12, 0)


def fail(round_id: int) -> None:
    from models.rounds import request_abort
    from models.session import transaction

    with transaction() as session:
        request_abort(session, round_id, "A drill")
    work(round_id)


def test_only_who_is_invited_sees_a_round_this_way(operator: Callable[..., Caller]) -> None:
    invited, other = operator("a"), operator("b")
    round_id = a_round([invited.id])
    assert_error(other.get(f"/api/operator/rounds/{round_id}"), 403, "not_invited")
    for unknown in ("2", "0", "01", "x", "9" * 30):
        assert_error(invited.get(f"/api/operator/rounds/{unknown}"), 404, "not_found")
