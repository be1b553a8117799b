"""A round as it looks from outside, from its opening to its end, and what nobody may see before the draw."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import event as sqlalchemy_event

from protocol.bundle import parse_bundle
from protocol.lifecycle import State
from protocol.seed import nonce_commit
from tests.app.conftest import Caller, assert_error
from tests.factories import (
    PRICE,
    a_played_round,
    a_round,
    move_clock_to,
    rows,
    some_tickets,
    submit,
    take_to,
    the_round,
)

SUMMARY = {
    "id": int,
    "state": str,
    "ticketPriceUsdc": int,
    "oddsRange": int,
    "totalTickets": int,
    "operatorCount": int,
    "escrowedOperatorCount": int,
    "excludedOperatorCount": int,
    "jackpotWon": bool,
    "jackpotWinnerCount": int,
    "jackpotAmount": (str, type(None)),
    "subPrizeTotalUsdc": (str, type(None)),
    "totalDeposited": str,
    "createdAt": str,
    "scheduledDrawTime": str,
}
DETAIL = {
    "operatorIds",
    "escrowedOperatorIds",
    "excludedOperatorIds",
    "fullManifestHash",
    "effectiveManifestHash",
    "drawSeed",
    "winnerIndex",
    "winningOperatorId",
    "jackpotNumber",
    "bonus1",
    "bonus2",
    "bonus3",
    "bonus4",
    "bonus5",
    "previousRoundHash",
    "chainedAnchorHash",
    "settlementHash",
    "btcSettlementTxHash",
}


def deadlines(**changes: Any) -> dict[str, Any]:
    start = datetime.now(UTC)
    names = ("sealAt", "sealingDeadline", "escrowDeadline", "scheduledDrawTime", "settleAt", "closeAt")
    return {name: (start + timedelta(minutes=n)).isoformat() for n, name in enumerate(names, 2)} | changes


def manifest_of(round_id: int, count: int, **claims: Any) -> dict[str, Any]:
    written = json.dumps({"roundId": round_id, **claims})
    digest = hashlib.sha256(written.encode()).hexdigest()
    return {"roundId": round_id, "manifestJson": written, "manifestHash": digest, "ticketCount": count}


def test_an_admin_opens_a_round_and_everybody_sees_it(
    anybody: Caller, operator: Callable[[str], Caller], admin: Callable[[str], Caller]
) -> None:
    operator("a"), operator("b")
    answer = admin("oncall").post("/api/admin/rounds", deadlines())
    assert answer.status_code == 201
    assert answer.get_json()["operatorIds"] == ["op_a", "op_b"]
    listed = anybody.get("/api/public/rounds").get_json()
    assert listed["count"] == 1
    [shown] = listed["rounds"]
    assert shown.keys() == SUMMARY.keys()
    for name, kind in SUMMARY.items():
        assert isinstance(shown[name], kind), name
    detail = anybody.get("/api/public/rounds/1").get_json()
    assert detail.keys() >= SUMMARY.keys() | DETAIL
    assert shown["createdAt"].endswith("Z")
    invited = operator("c").get("/api/operator/rounds").get_json()
    assert invited == {"rounds": [], "count": 0}


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"sealAt": "2020-01-01T00:00:00Z"}, "sealAt"),
        ({"sealAt": "tomorrow"}, "sealAt"),
        ({"sealAt": "2030-01-01T00:00:00"}, "sealAt"),
        ({"escrowDeadline": "2020-01-01T00:00:00Z"}, "escrowDeadline"),
        ({"closeAt": "2999-01-01T00:00:00Z"}, "closeAt"),
        ({"operatorIds": ["op_nobody"]}, "operatorIds"),
        ({"operatorIds": []}, "operatorIds"),
        ({"prize": 1}, "prize"),
    ],
)
def test_a_round_with_wrong_terms_is_not_opened(
    operator: Callable[[], Caller], admin: Callable[[], Caller], changes: dict[str, Any], wrong: str
) -> None:
    operator()
    body = assert_error(admin().post("/api/admin/rounds", deadlines(**changes)), 422)
    assert wrong in body["details"]
    assert rows("SELECT count(*) FROM rounds") == [(0,)]


@pytest.mark.parametrize("role", ["reviewer", "treasurer"])
def test_rounds_are_run_by_those_on_call(admin: Callable[[str], Caller], role: str) -> None:
    assert_error(admin(role).post("/api/admin/rounds", deadlines()), 403, "wrong_role")


def test_an_admin_asks_for_a_round_to_be_failed(operator: Callable[[], Caller], admin: Callable[[], Caller]) -> None:
    round_id = a_round([operator().id])
    answer = admin().post(f"/api/admin/rounds/{round_id}/fail", {"reason": "rehearsal"})
    assert (answer.status_code, answer.get_json()["state"]) == (202, "OPEN")
    take_it_on(round_id)
    detail = admin().get(f"/api/admin/rounds/{round_id}").get_json()
    assert (detail["state"], detail["failureReason"]) == ("FAILED", "rehearsal")
    assert [step["trigger"] for step in detail["timeline"]] == ["opened", "aborted"]
    assert_error(admin().post(f"/api/admin/rounds/{round_id}/fail", {"reason": "again"}), 409, "wrong_state")


def take_it_on(round_id: int) -> None:
    from tasks.rounds import advance_round

    advance_round(round_id)


def test_a_manifest_is_held_against_what_is_on_record(operator: Callable[[], Caller]) -> None:
    caller = operator()
    round_id = a_round([caller.id])
    submit(round_id, caller.id, some_tickets(3))
    path = "/api/operator/manifest"
    assert (
        "manifestHash"
        in assert_error(caller.post(path, manifest_of(1, 3) | {"manifestHash": "0" * 64}), 422)["details"]
    )
    assert "ticketCount" in assert_error(caller.post(path, manifest_of(1, 4)), 422)["details"]
    assert "ticketCount" in assert_error(caller.post(path, manifest_of(1, 3, ticketCount=4)), 422)["details"]
    assert "operatorId" in assert_error(caller.post(path, manifest_of(1, 3, operatorId="op_b")), 422)["details"]
    twice = '{"roundId": 1, "roundId": 1}'
    digest = hashlib.sha256(twice.encode()).hexdigest()
    assert_error(caller.post(path, manifest_of(1, 3) | {"manifestJson": twice, "manifestHash": digest}), 422)
    for _ in range(2):
        answer = caller.post(path, manifest_of(1, 3))
        assert answer.get_json() == {
            "success": True,
            "roundId": 1,
            "state": "OPEN",
            "sealedCount": 1,
            "totalInvited": 1,
        }
    assert_error(caller.post(path, manifest_of(1, 3, note="other")), 409, "manifest_conflict")
    assert [kind for (kind,) in rows("SELECT type FROM round_events ORDER BY id")] == [
        "ROUND_OPENED",
        "MANIFEST_SUBMITTED",
    ]


def test_a_nonce_is_revealed_between_the_seal_and_the_draw(operator: Callable[[str], Caller]) -> None:
    caller, other = operator("a"), operator("b")
    round_id = a_round([caller.id, other.id])
    nonce = bytes(range(32))
    commit = nonce_commit(round_id, caller.id, nonce)
    caller.post("/api/operator/manifest", manifest_of(round_id, 0, nonceCommit=commit))
    other.post("/api/operator/manifest", manifest_of(round_id, 0))
    path, body = "/api/operator/nonce", {"roundId": round_id, "nonce": nonce.hex()}
    assert_error(caller.post(path, body), 409, "wrong_state")
    take_to(round_id, State.ESCROWED)
    assert_error(other.post(path, body), 409, "no_commitment")
    assert_error(caller.post(path, body | {"nonce": "0" * 64}), 422)
    for _ in range(2):
        assert caller.post(path, body).status_code == 200
    take_to(round_id, State.DRAWN)
    proof = caller.get(f"/api/public/rounds/{round_id}/proof").get_json()
    assert proof["seed"]["nonces"] == [{"operatorId": caller.id, "nonce": nonce.hex()}]


def test_nothing_of_a_draw_is_seen_before_the_round_is_drawn(
    application: Flask, anybody: Caller, operator: Callable[[], Caller], admin: Callable[[], Caller]
) -> None:
    caller = operator()
    round_id = a_played_round([caller.id], State.ESCROWED)
    move_clock_to(round_id, "scheduled_draw_time")
    from models.encryption import decrypt
    from tasks.rounds import advance_once
    from tests.factories import do_pieces

    advance_once(round_id)  # the seed is fixed …
    do_pieces(round_id)  # … and every winner known; only the step to DRAWN is missing
    [(seed, number)] = rows("SELECT draw_seed, jackpot_number FROM draws")
    secret = the_round(round_id).secret_encrypted
    assert secret is not None
    hidden = (seed, str(number), decrypt(secret).hex())
    asked = 0
    for rule in application.url_map.iter_rules():
        if "GET" not in (rule.methods or ()) or "static" in rule.endpoint:
            continue
        path = str(rule).replace("<round_id>", "1").replace("<any_id>", "draw_1").replace("<operator_id>", caller.id)
        who = admin() if path.startswith("/api/admin") else caller
        answer = who.get(path)
        asked += answer.status_code == 200
        assert not [word for word in hidden if word in answer.text], path
    assert asked >= 9
    assert_error(anybody.get("/api/public/draw/1"), 404)
    assert_error(anybody.get("/api/public/draw/draw_1/winners"), 404)
    assert_error(anybody.get(f"/api/public/rounds/1/tickets/{caller.id}"), 409, "not_drawn")
    assert_error(caller.post("/api/operator/check-tickets", {"roundId": 1}), 409, "not_drawn")


def test_a_drawn_round_shows_its_draw_winners_tickets_and_proof(
    anybody: Caller, operator: Callable[[str], Caller]
) -> None:
    callers = [operator("a"), operator("b")]
    a_played_round([caller.id for caller in callers], State.CLOSED, 1_500)
    draw = anybody.get("/api/public/draw/1").get_json()
    assert draw == anybody.get("/api/public/draw/draw_1").get_json()
    assert draw["drawId"] == "draw_1"
    assert isinstance(draw["jackpotAmount"], str)
    winners = anybody.get("/api/public/draw/1/winners").get_json()
    assert [tier["tier"] for tier in winners["subPrizeTiers"]] == [1, 2, 3, 4, 5]
    last = winners["subPrizeTiers"][4]
    assert last["count"] == len(last["winners"]) > 0
    assert last["winners"][0].keys() == {"operatorId", "ticketId", "prizeAmount", "claimed"}
    assert winners["totalSubPrizeWinners"] == sum(tier["count"] for tier in winners["subPrizeTiers"])
    page = anybody.get("/api/public/draw/1/winners?tier=5&limit=1&offset=1").get_json()["subPrizeTiers"]
    assert [(tier["tier"], tier["winners"], tier["count"]) for tier in page] == [
        (5, last["winners"][1:2], last["count"])
    ]
    checked = [caller.post("/api/operator/check-tickets", {"roundId": 1}).get_json() for caller in callers]
    assert (
        sum(found["totalWinners"] for found in checked)
        == winners["totalSubPrizeWinners"] + winners["jackpotWinnerCount"]
    )
    answer = anybody.get("/api/public/rounds/1/tickets/op_b")
    assert answer.headers["Content-Encoding"] == "gzip"
    lines = gzip.decompress(answer.data).decode().splitlines()
    assert len(lines) == 1_500
    assert lines == sorted(lines, key=lambda line: json.loads(line)["ticketId"])
    assert anybody.get("/api/public/rounds/1").get_json()["totalDeposited"] == str(3_000 * PRICE)


@pytest.mark.parametrize("state", [State.OPEN, State.SEALING, State.ESCROWED, State.DRAWN, State.SETTLED, State.CLOSED])
def test_the_proof_bundle_has_its_published_form_in_every_state(
    anybody: Caller, operator: Callable[[], Caller], state: State
) -> None:
    caller = operator()
    a_played_round([caller.id], state)
    assert parse_bundle(anybody.get("/api/public/rounds/1/proof").get_json()).state == state


def test_the_log_tells_what_was_published(anybody: Caller, operator: Callable[[], Caller]) -> None:
    caller = operator()
    round_id = a_played_round([caller.id], State.CLOSED)
    log = anybody.get("/api/public/rounds/1/events").get_json()
    assert log["count"] == 5
    data = {entry["type"]: entry["data"] for entry in log["events"]}
    assert data["ROUND_OPENED"] == {}
    assert data["MANIFEST_SUBMITTED"] == {"operatorId": "op_a", "ticketCount": 30}
    assert data["ROUND_SEALED"] == {"sealedCount": 1}
    assert data["ROUND_DRAWN"].keys() == {"jackpotNumber", "bonus1", "bonus2", "bonus3", "bonus4", "bonus5"}
    assert data["ROUND_SETTLED"] == {"settlementHash": the_round(round_id).settlement_hash}


def test_the_list_costs_the_same_number_of_queries_however_long_it_is(
    anybody: Caller, operator: Callable[[], Caller]
) -> None:
    from models.session import engine

    caller = operator()
    asked: list[str] = []
    sqlalchemy_event.listen(engine(), "before_cursor_execute", lambda *args: asked.append(args[2]))

    def cost() -> int:
        asked.clear()
        assert anybody.get("/api/public/rounds").status_code == 200
        return len(asked)

    a_round([caller.id])
    first = cost()
    for _ in range(20):
        a_round([caller.id])
    assert cost() == first


def test_public_reads_may_be_read_by_any_web_page_and_nothing_else(anybody: Caller) -> None:
    for _ in range(2):  # the second one comes from memory
        read = anybody.get("/api/public/rounds").headers
        assert read["Access-Control-Allow-Origin"] == "*"
        assert {"ETag", "X-RateLimit-Remaining"} <= set(read["Access-Control-Expose-Headers"].split(", "))
    for path in ("/health", "/api/operator/me", "/api/admin/rounds/1"):
        assert "Access-Control-Allow-Origin" not in anybody.get(path).headers
