"""How many statements an endpoint sends to PostgreSQL: the same few whatever there is to show.

One rule: the number stands here, an endpoint a line. A read that asks once for every row it shows is found by the
second world, where there is more of everything; an endpoint that is new and not written down fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import event

from protocol.lifecycle import State
from tests.app.endpoints import BODIES, WITHOUT_BODY, World, a_small_world, endpoints
from tests.factories import a_played_round, a_round, an_operator, manifest, move_clock_to, take_part, take_to, work

# With the credential's two (the key and the operator) or one (the admin's key) where one is needed.
STATEMENTS = {
    "GET /health": 0,
    "GET /health/ready": 2,
    "GET /metrics": 19,
    "GET /api/public/rounds": 2,
    "GET /api/public/rounds/<round_id>": 3,
    "GET /api/public/rounds/<round_id>/events": 2,
    "GET /api/public/rounds/<round_id>/proof": 4,
    "GET /api/public/rounds/<round_id>/tickets/<operator_id>": 6,
    "GET /api/public/rounds/<round_id>/tickets/<operator_id>/<ticket_id>/proof": 5,
    "GET /api/public/rounds/<round_id>/tickets/<operator_id>/<ticket_id>/absence": 5,
    "GET /api/public/draw/<any_id>": 1,
    "GET /api/public/draw/<any_id>/winners": 2,
    "GET /api/public/sub-prizes/<any_id>": 3,
    "GET /api/public/history": 1,
    "GET /api/public/jackpot": 4,
    "GET /api/public/jackpot-counter": 4,
    "GET /api/public/odds": 1,
    "GET /api/public/stats": 5,
    "GET /api/public/operators": 1,
    "GET /api/public/operators/<operator_id>": 1,
    "GET /api/public/application-status/<application_id>": 1,
    "GET /api/operator/me": 3,
    "GET /api/operator/balance": 3,
    "GET /api/operator/rounds": 5,
    "GET /api/operator/rounds/<round_id>": 6,
    "GET /api/operator/webhook-logs": 4,
    "GET /api/admin/applications": 2,
    "GET /api/admin/operators": 2,
    "GET /api/admin/operators/<operator_id>": 4,
    "GET /api/admin/deliveries": 2,
    "GET /api/admin/deliveries/<delivery_id>": 3,
    "GET /api/admin/requeues": 3,
    "GET /api/admin/requeues/<job_id>": 3,
    "GET /api/admin/endpoints": 2,
    "GET /api/admin/queues": 8,
    "GET /api/admin/ledger": 3,
    "GET /api/admin/ledger/accounts": 2,
    "GET /api/admin/audit": 2,
    "GET /api/admin/rounds/<round_id>": 7,
    "POST /api/operator/check-tickets": 5,
}
WRITES = set(BODIES) | WITHOUT_BODY
PAGES = {
    "GET /api/public/rounds": ("?limit=1", "?limit=200"),
    "GET /api/public/history": ("?limit=1", "?limit=200"),
    "GET /api/public/draw/<any_id>/winners": ("?limit=1", "?limit=10000", "?tier=5"),
    "GET /api/public/sub-prizes/<any_id>": ("?limit=1", "?limit=10000", "?tier=5"),
    "GET /api/operator/webhook-logs": ("?limit=1", "?limit=200"),
    "GET /api/admin/operators": ("?limit=1", "?limit=200"),
    "GET /api/admin/deliveries": ("?limit=1", "?limit=200"),
    "GET /api/admin/endpoints": ("?limit=1", "?limit=200", "?state=healthy"),
    "GET /api/admin/requeues": ("?limit=1", "?limit=200"),
    "GET /api/admin/ledger": ("?limit=1", "?limit=200"),
    "GET /api/admin/audit": ("?limit=1", "?limit=200"),
    "GET /api/admin/applications": ("?status=pending", "?status=approved"),
}


def test_every_endpoint_that_reads_is_written_down(world: World) -> None:
    known = {str(endpoint) for endpoint in endpoints(world.application)}
    assert set(STATEMENTS) <= known
    assert {name for name in known if name.startswith("GET ")} <= set(STATEMENTS)
    assert known <= set(STATEMENTS) | WRITES


def test_a_read_sends_the_same_few_statements_however_much_there_is(world: World) -> None:
    manifest(1, "op_a")
    take_to(1, State.CLOSED)
    selling = a_round(["op_a"])
    measured = {"with little": statements(world, round_id=1)}
    # Rounds seal one after the other: this one, which nobody took part in, has to fail first.
    move_clock_to(selling, "seal_at")
    work(selling)
    everybody = ["op_a", *(an_operator(f"b{number}") for number in range(5))]
    for tickets in (3, 3, 300):
        last = a_played_round(everybody, State.CLOSED, tickets)
    for _ in range(3):
        take_part(a_round(everybody), everybody, tickets=2)
    applied(world, 5)
    measured["with much"] = statements(world, round_id=last)
    for size, found in measured.items():
        assert found == {name: {STATEMENTS[name]} for name in found}, size


def applied(world: World, count: int) -> None:
    for number in range(count):
        form = BODIES["POST /api/public/apply"] | {"contactEmail": f"n{number}@lotto.example"}
        assert world.anybody.post("/api/public/apply", form).status_code == 201


def statements(world: World, round_id: int) -> dict[str, set[int]]:
    """How many statements each read sent, by endpoint and query."""
    found: dict[str, set[int]] = {}
    for endpoint in endpoints(world.application):
        if str(endpoint) not in STATEMENTS:
            continue
        path = endpoint.path(round_id=str(round_id), any_id=f"draw_{round_id}")
        sent: dict[str, Any] = {"json": {"roundId": round_id}} if endpoint.method == "POST" else {}
        for query in ("", *PAGES.get(str(endpoint), ())):
            with counted() as count:
                answer = world.send(endpoint, path + query, **sent)
                assert answer.status_code == 200, f"{endpoint}: {answer.text}"
                assert answer.data  # a streamed answer is read to its end
            found.setdefault(str(endpoint), set()).add(len(count))
    return found


@contextmanager
def counted() -> Iterator[list[str]]:
    """The statements that are sent within this block."""
    from models.session import engine

    sent: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        sent.append(statement)

    event.listen(engine(), "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(engine(), "before_cursor_execute", note)


@pytest.fixture
def world(application: Flask) -> World:
    return a_small_world(application)
