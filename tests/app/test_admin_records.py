"""The books and the audit log: all of it, in order, page by page, for those who may read it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import event

from models.session import engine, transaction
from protocol.lifecycle import State
from tests.app.conftest import Caller, assert_error
from tests.factories import a_played_round, an_operator, balances, fund, rows, some_operators

LEDGER, AUDIT = "/api/admin/ledger", "/api/admin/audit"


def every_page(caller: Caller, path: str, key: str, limit: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        answer = caller.get(f"{path}{'&' if '?' in path else '?'}limit={limit}{cursor}").get_json()
        assert answer["count"] == len(answer[key]) <= limit
        found += answer[key]
        if answer["nextCursor"] is None:
            return found
        cursor = f"&cursor={answer['nextCursor']}"


def test_the_books_of_a_whole_round_add_up(admin: Callable[..., Caller]) -> None:
    operators = some_operators(2)
    round_id = a_played_round(operators, State.SETTLED)
    caller = admin("treasurer")
    postings = every_page(caller, LEDGER, "postings", 2)
    assert [one["postingId"] for one in postings] == [
        number for (number,) in rows("SELECT id FROM ledger_postings ORDER BY id DESC")
    ]
    sums: dict[str, int] = {}
    for posting in postings:
        assert sum(int(entry["amountUsdc"]) for entry in posting["entries"]) == 0
        for entry in posting["entries"]:
            sums[entry["account"]] = sums.get(entry["account"], 0) + int(entry["amountUsdc"])
    assert sums == balances()
    accounts = caller.get(f"{LEDGER}/accounts").get_json()["accounts"]
    assert {one["account"]: int(one["balanceUsdc"]) for one in accounts} == sums
    settled = every_page(caller, f"{LEDGER}?kind=settlement", "postings", 5)
    assert [(one["reference"], one["roundId"]) for one in settled] == [(f"settlement:{round_id}", round_id)]
    of_a = every_page(caller, f"{LEDGER}?account=operator:op_a", "postings", 1)
    assert of_a == [one for one in postings if any(e["account"] == "operator:op_a" for e in one["entries"])]
    assert every_page(caller, f"{LEDGER}?roundId={round_id}", "postings", 5) == [
        one for one in postings if one["roundId"] == round_id
    ]


def test_the_audit_log_tells_who_did_what_when_and_why(admin: Callable[..., Caller]) -> None:
    an_operator("a")
    caller = admin()
    for active in (False, True, False):
        caller.patch("/api/admin/operators/op_a", {"active": active, "reason": f"to {active}"})
    caller.post("/api/admin/queues/rounds/pause", {"reason": "100% sure"})
    entries = every_page(caller, AUDIT, "entries", 3)
    assert [(one["action"], one["subject"], one["reason"]) for one in entries] == [
        ("queue.pause", "rounds", "100% sure"),
        ("operator.suspend", "op_a", "to False"),
        ("operator.reinstate", "op_a", "to True"),
        ("operator.suspend", "op_a", "to False"),
    ]
    assert {one["actor"].partition(" ")[0] for one in entries} == {"root"}
    for query, expected in {
        "action=operator.suspend": [entries[1], entries[3]],
        "subject=rounds": entries[:1],
        "actor=root": entries,
        "actor=%25": [],
        f"until={entries[3]['at']}": [],
        "since=2001-01-01T00:00:00Z": entries,
    }.items():
        assert every_page(caller, f"{AUDIT}?{query}", "entries", 2) == expected, query


@pytest.mark.parametrize(("path", "statements"), [(LEDGER, 3), (AUDIT, 2)])
def test_a_page_takes_as_many_statements_however_long_it_is(
    admin: Callable[..., Caller], path: str, statements: int
) -> None:
    from models.audit import record

    an_operator("a")
    with transaction() as session:
        for number in range(20):
            record(session, "somebody", "act", str(number))
    for number in range(20):
        fund("op_a", 1, f"wire {number}")
    caller, asked = admin(), []
    event.listen(engine(), "before_cursor_execute", lambda _c, _cur, sql, *_: asked.append(sql))
    for limit in (2, 20):
        asked.clear()
        assert caller.get(f"{path}?limit={limit}").get_json()["count"] == limit
        assert len(asked) == statements  # one of them for the admin's key


def test_who_may_read_what(admin: Callable[..., Caller]) -> None:
    for role, ledger in (("treasurer", 200), ("root", 200), ("oncall", 403), ("reviewer", 403)):
        assert admin(role).get(LEDGER).status_code == ledger
        assert admin(role).get(f"{LEDGER}/accounts").status_code == ledger
        assert admin(role).get(AUDIT).status_code == (200 if role == "root" else 403)


@pytest.mark.parametrize(
    "query", ["cursor=x", "cursor=Wy0xXQ", "cursor=WzEuNV0", "cursor=WyIxIl0", "limit=0", "offset=1", "since=now"]
)
@pytest.mark.parametrize("path", [LEDGER, AUDIT])
def test_what_is_no_page_is_refused(admin: Callable[..., Caller], path: str, query: str) -> None:
    assert_error(admin().get(f"{path}?{query}"), 422, "invalid")
