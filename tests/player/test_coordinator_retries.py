"""The client when the coordinator, or the way to it, fails: what it sends again, when, and what it says in the end."""

from __future__ import annotations

import gzip
import pickle
import socket
from datetime import UTC, datetime
from pathlib import Path

import pytest

from player.coordinator import (
    Application,
    Conflict,
    Coordinator,
    CoordinatorError,
    Forbidden,
    Invalid,
    NotFound,
    RateLimited,
    Refused,
    Ticket,
    Unauthorized,
    Unavailable,
    Unreachable,
    Unreadable,
)
from player.coordinator.patience import Patience, retry_after
from tests.player.stubborn import EMPTY, GONE, KEY, TORN, Stubborn

DATE = "Wed, 21 Oct 2026 07:28:00 GMT"
LATER = "Wed, 21 Oct 2026 07:28:20 GMT"
FAR = "Wed, 21 Oct 2026 07:28:20 +99999999999999999999"
FORM = Application("Lotto Ltd", "Malta", "MGA/1", "office@lotto.example", "Ann", f"0x{'ab' * 20}")


def error(code: str) -> dict[str, str]:
    return {"error": f"it is {code}", "code": code}


def test_too_many_requests_wait_as_long_as_they_are_told_to(stubborn: Stubborn) -> None:
    limited = error("rate_limited")
    stubborn.answers = [
        (429, limited, {"Retry-After": "40"}),
        (429, limited, {"Retry-After": LATER, "Date": DATE}),
        (429, limited),
        (200, EMPTY),
    ]
    assert stubborn.client().rounds() == ()
    assert stubborn.clock.slept[0] == 40
    assert stubborn.clock.slept[1] == 20
    assert 0 <= stubborn.clock.slept[2] <= 2
    assert stubborn.paths() == ["login"] + ["rounds"] * 4


def test_who_is_told_to_wait_too_long_hears_of_it_at_once(stubborn: Stubborn) -> None:
    stubborn.answers = [(429, error("rate_limited"), {"Retry-After": "3600"})]
    with pytest.raises(RateLimited, match="rate_limited") as raised:
        stubborn.client().rounds()
    assert raised.value.retry_after == 3600
    assert stubborn.clock.slept == []


@pytest.mark.parametrize("failure", [(500, error("internal")), (502, b"<html>"), (503, {}), (504, b""), TORN, GONE])
def test_a_failure_on_the_way_is_got_over(stubborn: Stubborn, failure: tuple[int, object] | str) -> None:
    stubborn.answers = [failure, failure]
    assert stubborn.client().rounds() == ()
    assert stubborn.paths() == ["login"] + ["rounds"] * 3
    assert len(stubborn.clock.slept) == 2


def test_a_batch_whose_answer_was_lost_is_sent_again_byte_for_byte(stubborn: Stubborn) -> None:
    stubborn.answers = [TORN, GONE, (200, {"ticketsAccepted": 2, "state": "OPEN"})]
    tickets = [Ticket(f"t-{n}", (n, 2, 3, 4, 5, 6), True) for n in (1, 2)]
    heard: list[int] = []
    submitted = stubborn.client().submit_tickets(7, tickets, heard.append)
    assert (submitted.tickets, submitted.batches, heard) == (2, 1, [2])
    bodies = [body for path, _, body in stubborn.asked if path.endswith("tickets")]
    assert len(bodies) == 3
    assert len(set(bodies)) == 1


def test_it_gives_up_after_so_many_attempts_and_says_why(stubborn: Stubborn) -> None:
    stubborn.answers = [(503, error("unavailable"))] * 9
    with pytest.raises(Unavailable, match="GET /api/operator/rounds: 503 unavailable: it is unavailable"):
        stubborn.client(attempts=3).rounds()
    assert stubborn.paths() == ["login"] + ["rounds"] * 3


def test_it_gives_up_when_the_time_is_over(stubborn: Stubborn) -> None:
    stubborn.answers = [(503, {}, {"Retry-After": "25"})] * 99
    with pytest.raises(Unavailable):
        stubborn.client(attempts=99, patience=100).rounds()
    assert sum(stubborn.clock.slept) < 100
    assert stubborn.paths() == ["login"] + ["rounds"] * 4


def test_nobody_there_is_unreachable(stubborn: Stubborn) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and not listening
        stubborn.url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(Unreachable, match="POST /api/auth/operator/login: no answer"):
            stubborn.client().rounds()
        assert len(stubborn.clock.slept) == 5
        # Even what is sent once only is tried again, since it never left.
        with pytest.raises(Unreachable):
            stubborn.client().apply(FORM)
        assert len(stubborn.clock.slept) == 10


def test_an_application_whose_answer_was_lost_is_not_sent_again(stubborn: Stubborn) -> None:
    for failure in (TORN, GONE, (503, error("unavailable"))):
        stubborn.answers, stubborn.asked = [failure], []
        with pytest.raises((Unreachable, Unavailable)):
            stubborn.client().apply(FORM)
        assert stubborn.paths() == ["apply"]
    assert stubborn.clock.slept == []


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Invalid),
        (403, Forbidden),
        (404, NotFound),
        (405, Refused),
        (409, Conflict),
        (413, Invalid),
        (415, Invalid),
        (422, Invalid),
    ],
)
def test_a_refusal_is_raised_at_once_with_its_reason(stubborn: Stubborn, status: int, kind: type[Refused]) -> None:
    stubborn.answers = [(status, {"error": "no", "code": "a_code", "details": {"field": ["wrong"]}})]
    with pytest.raises(kind) as raised:
        stubborn.client().rounds()
    refused = raised.value
    assert (refused.status, refused.code, refused.error) == (status, "a_code", "no")
    assert refused.details == {"field": ["wrong"]}
    assert "(field)" in str(refused)
    assert stubborn.clock.slept == []


@pytest.mark.parametrize(
    "answer",
    [
        (200, b"<html>Welcome to our hotel</html>"),
        (200, []),
        (200, {"rounds": None}),
        (200, {"rounds": [{"id": 1}]}),
        (200, {"rounds": [7]}),
        (302, b"", {"Location": "http://127.0.0.1:9/"}),
    ],
)
def test_an_answer_that_is_not_the_coordinators_is_called_that(stubborn: Stubborn, answer: tuple[int, object]) -> None:
    stubborn.answers = [answer]  # type: ignore[list-item]
    with pytest.raises(Unreadable, match="GET /api/operator/rounds"):
        stubborn.client().rounds()
    assert stubborn.paths() == ["login", "rounds"]


def test_an_answer_that_is_nonsense_to_the_bone_is_called_that(stubborn: Stubborn) -> None:
    stubborn.answers = [(200, b"[" * 200_000)]
    with pytest.raises(Unreadable):
        stubborn.client().rounds()
    endless = {"tier": float("inf"), "winners": [{"ticketId": "x"}]}
    stubborn.answers = [(200, {"jackpotWinners": [], "bonusTiers": [endless]})]
    with pytest.raises(Unreadable):
        stubborn.client().check_tickets(7)
    for access_token, lifetime in (("sec\nret", 900), ("sëcret", 900), ("secret", 10**400)):
        stubborn.logins = [(200, {"accessToken": access_token, "refreshToken": "r", "expiresIn": lifetime})]
        with pytest.raises(Unreadable) as raised:
            stubborn.client().rounds()
        assert access_token not in str(raised.value)


def test_an_answer_that_inflates_without_end_is_not_read_to_it(
    stubborn: Stubborn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("player.coordinator.transport.MOST_BYTES", 1_000_000)
    bomb = gzip.compress(b" " * 10_000_000 + b'{"rounds": []}')
    stubborn.answers = [(200, bomb, {"Content-Encoding": "gzip"})]
    with pytest.raises(Unreadable, match="longer than 1000000 bytes"):
        stubborn.client().rounds()
    assert stubborn.client().rounds() == ()


def test_an_error_arrives_whole_in_another_process(stubborn: Stubborn) -> None:
    for answer in (
        (429, error("rate_limited"), {"Retry-After": "3600"}),
        (409, error("sales_ended")),
        (200, b"?"),
        GONE,
    ):
        stubborn.answers = [answer]  # type: ignore[list-item]
        with pytest.raises(CoordinatorError) as raised:
            stubborn.client(attempts=1).rounds()
        there = pickle.loads(pickle.dumps(raised.value))  # noqa: S301 - our own
        assert (type(there), str(there), vars(there)) == (type(raised.value), str(raised.value), vars(raised.value))


def test_no_error_and_no_picture_of_the_client_shows_the_key(stubborn: Stubborn) -> None:
    client = stubborn.client(attempts=1)
    shown = [repr(client), str(client)]
    for answers in ([GONE], [TORN], [(401, {}), (401, {})], [(500, {})], [(200, b"?")]):
        stubborn.answers = list(answers)
        with pytest.raises(CoordinatorError) as raised:
            client.rounds()
        shown += [str(raised.value), repr(raised.value)]
    assert not [text for text in shown if "verysecret" in text or "a1" in text or "r1" in text]
    sent = [path for path, headers, body in stubborn.asked if KEY.encode() in body or KEY in str(headers)]
    assert set(sent) == {"/api/auth/operator/login"}


def test_passwords_kept_for_other_programs_are_not_sent(
    stubborn: Stubborn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("default login someone password hunter2\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    client = stubborn.client()
    client.rounds()
    assert stubborn.bearers() == ["a1"]
    with pytest.raises(Unreadable):
        client.jackpot()
    assert ["Authorization" in headers for _, headers, _ in stubborn.asked] == [False, True, False]


@pytest.mark.parametrize(
    "url", ["", "coordinator.example", "ftp://x", "http://", "http://me:secret@x", "http://x/?a=1", "http://x/#a"]
)
def test_an_address_that_cannot_be_one_is_refused_when_it_is_given(url: str) -> None:
    with pytest.raises(ValueError, match="address"):
        Coordinator(url, KEY)


def test_without_a_key_only_public_things_are_asked(stubborn: Stubborn) -> None:
    stubborn.answers = [(200, {"events": []})]
    client = stubborn.client(api_key=None)
    assert client.events(1) == ()
    with pytest.raises(Unauthorized, match="no API key"):
        client.rounds()
    assert stubborn.paths() == ["events"]


def test_waits_grow_at_random_and_never_beyond_the_longest() -> None:
    patience = Patience(first=0.5, longest=4.0)
    highest = [patience.wait(attempt, None, lambda low, high: high) for attempt in range(1, 6)]
    assert highest == [0.5, 1.0, 2.0, 4.0, 4.0]
    assert patience.wait(5, None, lambda low, high: low) == 0
    assert patience.wait(1, 9.0, lambda low, high: high) == 9.0
    assert patience.wait(10_000, None, lambda low, high: high) == 4.0


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        ("7", 7.0),
        (" 0 ", 0.0),
        (LATER, 20.0),
        (DATE, 0.0),
        ("", None),
        ("-3", None),
        ("soon", None),
        ("٣", None),
        (FAR, None),
    ],
)
def test_retry_after_is_read_in_both_of_its_forms(asked: str, seconds: float | None) -> None:
    now = datetime(2000, 1, 1, tzinfo=UTC)  # a clock that is wrong
    assert retry_after({"Retry-After": asked, "Date": DATE}, now) == seconds


def test_a_date_is_taken_from_our_clock_when_the_answer_has_none() -> None:
    assert retry_after({"Retry-After": LATER}, datetime(2026, 10, 21, 7, 28, 5, tzinfo=UTC)) == 15.0


def test_samples_of_webhooks_are_waited_for_and_told(stubborn: Stubborn) -> None:
    taken = {"event": "round.opened", "status": "delivered", "statusCode": 200}
    lost = {"event": "round.drawn", "status": "failed", "statusCode": None, "new": "and unknown here"}
    stubborn.answers = [(200, {"success": True, "delivery": taken}), (200, {"deliveries": [taken, lost]})]
    client = stubborn.client()
    assert client.test_webhook("round.opened").delivered
    assert [each.delivered for each in client.test_all_webhooks()] == [True, False]


def test_winners_are_gathered_from_as_many_pages_as_there_are(stubborn: Stubborn) -> None:
    def page(*tiers: tuple[int, int, list[str]]) -> tuple[int, object]:
        shown = [
            {
                "tier": tier,
                "count": count,
                "winners": [
                    {"operatorId": "op_a", "ticketId": ticket_id, "prizeAmount": "5", "claimed": False}
                    for ticket_id in ids
                ],
            }
            for tier, count, ids in tiers
        ]
        about = {"drawId": "draw_7", "roundId": 7, "jackpotWon": False, "jackpotWinnerCount": 0, "jackpotAmount": "1"}
        return 200, {**about, "subPrizeTiers": shown, "totalSubPrizeWinners": 4}

    stubborn.answers = [page((1, 1, ["a"]), (5, 3, ["b", "c"])), page((1, 1, []), (5, 3, ["d"]))]
    found = stubborn.client().winners(7)
    assert [[winner.ticket_id for winner in tier.winners] for tier in found.sub_prize_tiers] == [["a"], ["b", "c", "d"]]
    assert [path.partition("?")[2] for path, _, _ in stubborn.asked] == ["limit=10000&offset=0", "limit=10000&offset=2"]
    # A list that never becomes as long as it is said to be is not asked for without end.
    stubborn.answers = [page((5, 3, ["b"])), page((5, 3, []))]
    assert len(stubborn.client().winners(7).sub_prize_tiers[0].winners) == 1
