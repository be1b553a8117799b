"""The admin API: staff finds players, rounds and money; what it changes is noted with the reason."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from flask.testing import FlaskClient
from sqlalchemy import func, select

from player.models.kyc import request_kyc
from player.models.players import lock_player
from player.models.rounds import Round
from player.models.session import transaction
from player.models.sessions import PlayerSession
from tests.player.factories import TICKET_PRICE as PRICE
from tests.player.staff import Staff, a_busy_house, some_staff


@pytest.fixture
def staff(client: FlaskClient) -> Staff:
    a_busy_house()
    return some_staff(client)


FOUND = {
    "": [2, 1],
    "?search=ANA@EXAMPLE": [1],
    "?search=bo": [2],
    "?search=2": [2],
    "?search=%25": [],
    "?kycLevel=none&limit=1": [2],
    "?limit=1&offset=1": [1],
    "?kycLevel=full": [],
    "?suspended=true": [],
    "?suspended=false": [2, 1],
}


def test_players_are_found(staff: Staff) -> None:
    for query, found in FOUND.items():
        answer = staff.get(f"players{query}")
        assert [player["id"] for player in answer["players"]] == found, query
        assert answer["count"] == len(found)


def test_a_players_file_has_what_a_decision_needs_and_no_secret(staff: Staff) -> None:
    shown = staff.get("players/1")
    assert {name: shown[name] for name in ("balance", "openSessions", "ticketCount")} == {
        "balance": str(7 * PRICE),
        "openSessions": 1,
        "ticketCount": 3,
    }
    nothing = {"amount": None, "nextAmount": None, "nextAt": None}
    assert shown["limits"] == [{"period": period, **nothing} for period in ("day", "week", "month")]
    assert "secret" not in str(shown)
    assert staff.get("players/3", 404)["code"] == "not_found"
    statement = staff.get("players/1/transactions?type=deposit")
    assert [(line["type"], line["amount"]) for line in statement["transactions"]] == [("deposit", str(10 * PRICE))]


def test_a_suspended_player_has_no_session_left_until_she_is_reinstated(staff: Staff) -> None:
    shown = staff.post("players/1/suspend", {"reason": "two accounts"})
    assert shown["suspendedReason"] == "two accounts"
    assert shown["suspendedAt"]
    with transaction() as session:
        left = select(func.count()).where(PlayerSession.ended_at.is_(None))
        assert session.scalars(left).one() == 0
    assert [player["id"] for player in staff.get("players?suspended=true")["players"]] == [1]
    assert staff.post("players/1/suspend", {"reason": "again"}, 409)["code"] == "already_suspended"
    assert staff.post("players/1/reinstate", {"reason": "explained"})["suspendedAt"] is None
    assert staff.post("players/1/reinstate", {"reason": "again"}, 409)["code"] == "not_suspended"
    noted = [
        (entry["who"], entry["action"], entry["reason"]) for entry in staff.get("audit?subject=player:1")["entries"]
    ]
    assert noted == [("Ana", "player.reinstate", "explained"), ("Ana", "player.suspend", "two accounts")]


def test_a_credit_is_given_once_and_noted_once(staff: Staff) -> None:
    credit = {"amountUsdc": "5", "reference": "case 7", "reason": "sorry"}
    assert staff.post("players/2/credit", credit) == {"credited": True, "balance": "5"}
    assert staff.post("players/2/credit", credit) == {"credited": False, "balance": "5"}
    assert staff.post("players/2/credit", credit | {"amountUsdc": "6"}, 409)["code"] == "reference_used"
    assert staff.post("players/9/credit", credit, 404)["code"] == "not_found"
    (line,) = staff.get("players/2/transactions")["transactions"]
    assert (line["type"], line["amount"], line["reference"]) == ("credit", "5", "case 7")
    (entry,) = staff.get("audit?action=player.credit")["entries"]
    assert entry["details"] == {"amountUsdc": "5", "reference": "case 7"}


def test_a_kyc_request_is_decided_once_and_the_oldest_waits_on_top(staff: Staff) -> None:
    with transaction() as session:
        for player_id in (1, 2):
            request_kyc(session, lock_player(session, player_id), "basic", None)
    assert [each["playerId"] for each in staff.get("kyc")["requests"]] == [1, 2]
    decision = {"approve": True, "reason": "passport seen"}
    shown = staff.post("kyc/1/decide", decision)
    assert (shown["status"], shown["decidedBy"], shown["reason"]) == ("approved", "Ana", "passport seen")
    assert staff.post("kyc/1/decide", decision, 409)["code"] == "kyc_decided"
    assert staff.get("players/1")["kycLevel"] == "basic"
    assert staff.post("kyc/2/decide", decision | {"approve": False})["status"] == "rejected"
    assert [each["playerId"] for each in staff.get("kyc?status=approved")["requests"]] == [1]
    noted = [(entry["action"], entry["subject"]) for entry in staff.get("audit")["entries"]]
    assert noted == [("kyc.reject", "player:2"), ("kyc.approve", "player:1")]


def test_nothing_is_changed_without_a_reason(staff: Staff) -> None:
    for path, body in {"suspend": {}, "reinstate": {}, "credit": {"amountUsdc": "5", "reference": "x"}}.items():
        for reason in ({}, {"reason": ""}, {"reason": "  "}, {"reason": None}):
            assert "reason" in staff.post(f"players/1/{path}", body | reason, 422)["details"]
    assert staff.get("audit")["entries"] == []


def test_a_round_shows_what_was_sold_sent_and_won(staff: Staff) -> None:
    shown = staff.get("rounds/1")
    assert (shown["stage"], shown["state"], shown["draw"]["drawId"]) == ("payable", "SETTLED", "draw_1")
    assert shown["tickets"] == [
        {"status": "lost", "count": 1, "amount": str(PRICE)},
        {"status": "won", "count": 1, "amount": str(PRICE)},
    ]
    assert (shown["unsentTickets"], shown["submissions"], shown["openSubmissions"]) == (0, 1, 0)
    assert shown["prizes"] == [{"status": "unclaimed", "count": 1, "amount": "5000000"}]
    assert staff.get("rounds/2")["unsentTickets"] == 1
    assert staff.get("rounds/3", 404)["code"] == "not_found"


def test_a_round_is_looked_at_at_once_when_staff_asks(staff: Staff) -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    with transaction() as session:
        session.get_one(Round, 2).due_at = later
    asked = staff.post("rounds/2/look", {"reason": "the coordinator is back"})
    assert asked["nextAttemptAt"] < later.isoformat()
    assert staff.post("rounds/3/look", {"reason": "x"}, 404)["code"] == "not_found"
    assert [entry["subject"] for entry in staff.get("audit?action=round.look")["entries"]] == ["round:2"]


HOW_MANY = {
    "rounds": 2,
    "rounds?stage=selling": 1,
    "tickets?roundId=1": 2,
    "tickets?roundId=1&status=won": 1,
    "tickets?playerId=2": 0,
    "submissions?roundId=1&accepted=true": 1,
    "submissions?accepted=false": 0,
    "prizes?roundId=1&status=unclaimed": 1,
    "prizes?playerId=2": 0,
    "payments?kind=deposit&status=pending&playerId=1": 1,
    "payments?kind=withdrawal": 0,
    "webhooks?event=round.drawn&roundId=1&handled=false": 1,
    "webhooks?handled=true": 0,
    "mails?playerId=1&sent=false": 1,
    "mails?sent=true": 0,
    "chores": 4,
    "views": 0,
}


def test_lists_are_filtered_and_counted(staff: Staff) -> None:
    for path, found in HOW_MANY.items():
        answer = staff.get(path)
        (items,) = [value for value in answer.values() if isinstance(value, list)]
        assert (len(items), answer["count"]) == (found, found), path


def test_a_mails_text_is_for_the_sandbox_only(staff: Staff, monkeypatch: pytest.MonkeyPatch) -> None:
    from player.settings import settings

    assert staff.get("mails")["mails"][0]["text"] == "a secret"
    monkeypatch.setenv("SANDBOX", "0")
    monkeypatch.setenv("SMTP_URL", "smtps://mail.example.com")
    settings.cache_clear()
    assert staff.get("mails")["mails"][0]["text"] is None


def test_what_a_round_brought_is_what_was_sold_less_what_is_owed(staff: Staff) -> None:
    report = staff.get("reports/rounds/1")
    assert (report["tickets"], report["sales"], report["refunds"]) == (2, str(2 * PRICE), "0")
    assert (report["house"], report["payoutsReported"]) == (str(2 * PRICE - 5_000_000), 0)


def test_the_books_say_whether_all_money_agrees(staff: Staff) -> None:
    staff.post("players/2/credit", {"amountUsdc": "5", "reference": "x", "reason": "sorry"})
    told = staff.get("reports/books")
    # The house's tests write a payable round whose sales were never settled; everything else agrees.
    assert (told["world"], told["players"], told["house"]) == (str(-10 * PRICE), str(7 * PRICE + 5), "-5")
    assert told["faults"]
    assert not told["balanced"]


def test_each_day_shows_what_moved_on_it(staff: Staff) -> None:
    staff.post("players/2/credit", {"amountUsdc": "5", "reference": "x", "reason": "sorry"})
    today = datetime.now(UTC).date()
    days = staff.get(f"reports/daily?from={today - timedelta(days=1)}&to={today}")["days"]
    (day,) = [day for day in days if day["deposits"] != "0"]
    assert (day["deposits"], day["sales"], day["credits"], day["prizes"]) == (str(10 * PRICE), str(3 * PRICE), "5", "0")
    assert len(staff.get("reports/daily?from=2025-02-27&to=2025-03-01")["days"]) == 3
    assert len(staff.get("reports/daily?from=9999-12-31&to=9999-12-31")["days"]) == 1
    for wrong in ("from=2026-02-02&to=2026-02-01", "from=2020-01-01&to=2026-02-01", "from=x&to=y", "from=2026-01-01"):
        staff.get(f"reports/daily?{wrong}", 422)


def test_what_is_no_id_is_no_path(staff: Staff) -> None:
    for number in ("0", "01", "-1", "1.0", "x", "9" * 16, "9" * 30, "%D9%A1"):
        assert staff.get(f"players/{number}", 404)["code"] == "not_found"
