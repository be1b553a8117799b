"""When the rows of a round are gone, everything that anybody can ask of it is answered as before, byte for byte."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from protocol.lifecycle import State
from protocol.verify import main
from tests.app.conftest import Caller, assert_error
from tests.app.endpoints import endpoints
from tests.factories import a_round, an_operator, manifest, rows, some_tickets, submit, take_part, take_to
from tests.ticket_drops import age, do_what_is_due, has_rows, keep_rows_for

SOLD = 4_200
TICKETS = ("t-0", f"t-{SOLD - 1}", "t-77", "A", "t-77.", "zz", "t 0")


@pytest.mark.usefixtures("generous")
def test_every_answer_is_the_same_without_the_rows_and_the_round_is_verified_from_them(
    application: Flask,
    anybody: Caller,
    operator: Callable[[str], Caller],
    admin: Callable[[str], Caller],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    keep_rows_for(30, monkeypatch)
    seller = operator("a")
    operators = [seller.id, an_operator("b"), an_operator("idle")]
    round_id = a_round(operators)
    submit(round_id, seller.id, some_tickets(SOLD, 1, GENEROUS_RANGES))
    submit(round_id, "op_b", some_tickets(50, 2, GENEROUS_RANGES))
    submit(round_id, "op_idle", some_tickets(5, 3, GENEROUS_RANGES))
    manifest(round_id, seller.id)
    manifest(round_id, "op_b")
    take_to(round_id, State.CLOSED)
    age(round_id, 31)
    later = a_round(operators)
    take_part(later, operators, 0)

    def everything() -> dict[str, Any]:
        return (
            public(application, anybody, round_id) | own(seller, round_id) | {"admin": admins(admin("root"), round_id)}
        )

    own(seller, round_id)  # Its report of a payout counts once.
    with_rows = everything()
    assert sum(isinstance(answer, tuple) and answer[0] == 200 for answer in with_rows.values()) > 30
    do_what_is_due()
    assert not has_rows(round_id)
    assert has_rows(later)
    without = everything()
    assert without.keys() == with_rows.keys()
    for asked, answer in with_rows.items():
        assert without[asked] == answer, asked

    bundle = tmp_path / "bundle.json"
    bundle.write_bytes(anybody.get(f"/api/public/rounds/{round_id}/proof").data)
    for operator_id in (seller.id, "op_b"):
        sealed = anybody.get(f"/api/public/rounds/{round_id}/tickets/{operator_id}").data
        (tmp_path / f"{operator_id}.ndjson.gz").write_bytes(sealed)
    told = io.StringIO()
    with redirect_stdout(told), redirect_stderr(told):
        code = main([str(bundle), "--tickets", str(tmp_path)])
    assert (code, told.getvalue().splitlines()[-1]) == (0, "verified")


GENEROUS_RANGES = (3, 4, 4, 3, 3, 2)


def public(application: Flask, anybody: Caller, round_id: int) -> dict[str, tuple[int, bytes]]:
    """What every public endpoint answers about the round, for every operator and some tickets."""
    found = {}
    for endpoint in endpoints(application):
        if endpoint.method != "GET" or not endpoint.rule.startswith("/api/public/"):
            continue
        for operator_id in ("op_a", "op_b", "op_idle", "op_nobody") if "operator_id" in endpoint.parameters else ("",):
            for ticket_id in TICKETS if "ticket_id" in endpoint.parameters else ("",):
                ids = {"round_id": str(round_id), "any_id": f"draw_{round_id}"}
                path = endpoint.path(**ids, operator_id=operator_id, ticket_id=ticket_id)
                for query in ("", "?limit=3") if "winners" in path else ("",):
                    answer = anybody.get(path + query)
                    packed = answer.headers.get("Content-Encoding") == "gzip"
                    found[path + query] = answer.status_code, gzip.decompress(answer.data) if packed else answer.data
    return found


def own(seller: Caller, round_id: int) -> dict[str, tuple[int, bytes]]:
    """What an operator is told, and what it is refused."""
    tickets = {"roundId": round_id, "tickets": []}
    asked = {
        "invited": seller.get("/api/operator/rounds"),
        "check": seller.post("/api/operator/check-tickets", {"roundId": round_id}),
        "late tickets": seller.post("/api/operator/tickets", tickets | {"tickets": [A_TICKET]}),
        "payout": seller.post("/api/operator/payouts", {"roundId": round_id, "payouts": [a_win(round_id)]}),
    }
    assert_error(asked["late tickets"], 409, "sales_ended")
    return {name: (answer.status_code, answer.data) for name, answer in asked.items()}


A_TICKET = {
    "ticketId": "late",
    "jackpotNumber": 1,
    **{f"bonus{tier}": 1 for tier in range(1, 6)},
    "isQuickPick": False,
}


def a_win(round_id: int) -> dict[str, Any]:
    [(ticket_id, tier)] = rows(
        "SELECT ticket_id, tier FROM winners WHERE round_id = :id AND operator_id = 'op_a' ORDER BY 2, 1 LIMIT 1",
        id=round_id,
    )
    return {"ticketId": ticket_id, "tier": tier}


def admins(root: Caller, round_id: int) -> dict[str, Any]:
    answer = root.get(f"/api/admin/rounds/{round_id}")
    assert answer.status_code == 200
    return answer.get_json()  # type: ignore[no-any-return]
