"""Many at once: whoever comes second finds what the first one did, whole, and nobody gets an error of ours.

One rule: real threads through the whole application on the real PostgreSQL, released together, and every answer is
looked at. There are more of them than connections, as in a flood: who finds none free waits for one, as the pool is
made to, so nobody here needs to try again. (In production a web process has fewer threads than connections.)
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest
from werkzeug.test import TestResponse

from models.session import engine
from models.settings import settings
from protocol.lifecycle import State
from tasks.rounds import advance_round
from tests.app.conftest import Caller, assert_error
from tests.app.test_applications import FORM, bearer, login
from tests.app.test_rounds import deadlines
from tests.app.test_tickets import a_batch, a_ticket
from tests.factories import a_round, balances, manifest, move_clock_to, rows, some_tickets, submit, the_round

Ask = Callable[[Caller], TestResponse]


def all_at_once(caller: Caller, asks: Sequence[Ask]) -> list[TestResponse]:
    """Every request in a thread of its own, with a client of its own, released together; the answers in order."""
    together = threading.Barrier(len(asks))

    def attempt(ask: Ask) -> TestResponse:
        own = Caller(caller.client.application.test_client(), caller.headers, caller.id)
        together.wait(timeout=30)
        return ask(own)

    with ThreadPoolExecutor(len(asks)) as pool:
        answers = list(pool.map(attempt, asks))
    assert [answer.text for answer in answers if answer.status_code >= 500] == []
    return answers


def statuses(answers: Sequence[TestResponse]) -> Counter[int]:
    return Counter(answer.status_code for answer in answers)


def one(answers: Sequence[TestResponse], status: int) -> dict[str, Any]:
    """The body of the only answer with this status."""
    [body] = [answer.get_json() for answer in answers if answer.status_code == status]
    assert isinstance(body, dict)
    return body


def test_of_a_hundred_applications_with_one_email_one_is_filed_and_the_others_name_it(anybody: Caller) -> None:
    letters = "ops@alba.example"

    def apply(place: int) -> Ask:
        # Every one of them written differently: the bits of its number say which letters are capitals.
        email = "".join(letter.upper() if place >> at & 1 else letter for at, letter in enumerate(letters))
        return lambda caller: caller.post("/api/public/apply", FORM | {"contactEmail": email})

    answers = all_at_once(anybody, [apply(place) for place in range(100)])
    assert statuses(answers) == {201: 1, 409: 99}
    filed = one(answers, 201)["applicationId"]
    for answer in answers:
        if answer.status_code == 409:
            assert assert_error(answer, 409, "application_pending")["applicationId"] == filed
    assert rows("SELECT id FROM applications") == [(filed,)]


def test_fifty_equal_batches_are_accepted_once_and_all_succeed(operator: Callable[[], Caller]) -> None:
    caller = operator()
    a_round([caller.id])
    batch = a_batch(*(a_ticket(place) for place in range(200)))
    answers = all_at_once(caller, [lambda it: it.post("/api/operator/tickets", batch)] * 50)
    assert statuses(answers) == {200: 50}
    assert {answer.get_json()["ticketsAccepted"] for answer in answers} == {200}
    assert rows("SELECT count(*) FROM tickets") == [(200,)]
    assert rows("SELECT ticket_count FROM participations") == [(200,)]


def test_of_batches_that_contradict_each_other_one_is_on_record_whole(operator: Callable[[], Caller]) -> None:
    caller = operator()
    a_round([caller.id])
    # Each has tickets of its own besides those in dispute, and nothing of a batch that lost may be left.
    batches = [
        a_batch(
            *(a_ticket(place, bonus5=variant) for place in range(100)),
            *(a_ticket(1_000 * variant + place) for place in range(100)),
        )
        for variant in range(1, 11)
    ]
    asks: list[Ask] = [lambda it, batch=batch: it.post("/api/operator/tickets", batch) for batch in batches]
    answers = all_at_once(caller, asks)
    assert statuses(answers) == {200: 1, 409: 9}
    winner = [answer.status_code for answer in answers].index(200) + 1
    for answer in answers:
        if answer.status_code == 409:
            assert assert_error(answer, 409, "ticket_conflict")["details"]["count"] == 100
    stored = rows("SELECT ticket_id, bonus5 FROM tickets")
    assert dict(stored) == {
        **{f"t-{place}": winner for place in range(100)},
        **{f"t-{1_000 * winner + place}": 5 for place in range(100)},
    }
    assert rows("SELECT ticket_count FROM participations") == [(200,)]


def test_batches_that_overlap_are_all_on_record_and_every_ticket_once(operator: Callable[[], Caller]) -> None:
    caller = operator()
    a_round([caller.id])
    asks: list[Ask] = [
        lambda it, start=start: it.post(
            "/api/operator/tickets", a_batch(*(a_ticket(place) for place in range(start, start + 60)))
        )
        for start in range(0, 600, 30)
    ]
    assert statuses(all_at_once(caller, asks)) == {200: 20}
    assert rows("SELECT count(*), count(DISTINCT ticket_id) FROM tickets") == [(630, 630)]
    assert rows("SELECT ticket_count FROM participations") == [(630,)]


def test_a_refresh_token_used_at_once_gives_one_pair_and_the_operator_can_go_on(operator: Callable[[], Caller]) -> None:
    caller = operator()
    anybody = Caller(caller.client, {})
    used = {"refreshToken": login(caller)["refreshToken"]}
    answers = all_at_once(anybody, [lambda it: it.post("/api/auth/refresh", used)] * 20)
    assert statuses(answers) == {200: 1, 401: 19}
    pair = one(answers, 200)
    # Which of the twenty was the thief nobody can tell, so the whole family fell …
    assert_error(anybody.post("/api/auth/refresh", {"refreshToken": pair["refreshToken"]}), 401, "invalid_token")
    assert rows("SELECT count(*) FROM refresh_tokens WHERE revoked_at IS NULL") == [(0,)]
    # … and whoever merely clicked twice works on with the access token and logs in again with the key.
    assert anybody.get("/api/operator/me", headers=bearer(pair["accessToken"])).status_code == 200
    again = login(caller)
    assert anybody.post("/api/auth/refresh", {"refreshToken": again["refreshToken"]}).status_code == 200


def test_a_refresh_and_a_logout_at_once_leave_nothing_that_refreshes(operator: Callable[[], Caller]) -> None:
    caller = operator()
    anybody = Caller(caller.client, {})
    for _ in range(5):
        token = {"refreshToken": login(caller)["refreshToken"]}
        refreshed, left = all_at_once(
            anybody,
            [lambda it: it.post("/api/auth/refresh", token), lambda it: it.post("/api/auth/logout", token)],  # noqa: B023
        )
        assert left.status_code == 200
        assert refreshed.status_code in (200, 401)
        assert rows("SELECT count(*) FROM refresh_tokens WHERE revoked_at IS NULL") == [(0,)]


def test_an_application_decided_by_many_at_once_is_decided_once(anybody: Caller, admin: Callable[[], Caller]) -> None:
    filed = anybody.post("/api/public/apply", FORM).get_json()["applicationId"]
    path = f"/api/admin/applications/{filed}"
    asks: list[Ask] = [lambda it: it.post(f"{path}/approve", {}), lambda it: it.post(f"{path}/reject", {})] * 10
    answers = all_at_once(admin(), asks)
    assert statuses(answers) == {200: 1, 409: 19}
    decided = one(answers, 200)
    approved = decided["status"] == "approved"
    assert approved == (decided["apiKey"] is not None)
    assert rows("SELECT status FROM applications") == [(decided["status"],)]
    assert rows("SELECT count(*) FROM operators") == [(int(approved),)]
    assert rows("SELECT count(*) FROM operator_api_keys") == [(int(approved),)]
    assert rows("SELECT action FROM audit_log") == [("application.approve" if approved else "application.reject",)]


def test_a_deposit_reported_fifty_times_at_once_is_booked_once(
    operator: Callable[..., Caller], admin: Callable[[], Caller]
) -> None:
    caller = operator("a", 0)
    path, body = f"/api/admin/operators/{caller.id}/deposits", {"amountUsdc": "5", "reference": "wire 1"}
    answers = all_at_once(admin(), [lambda it: it.post(path, body)] * 50)
    assert statuses(answers) == {200: 50}
    assert {answer.get_json()["balanceUsdc"] for answer in answers} == {"5"}
    assert balances() == {"external": -5, "operator:op_a": 5}
    assert rows("SELECT count(*) FROM ledger_postings") == [(1,)]
    assert rows("SELECT count(*) FROM audit_log") == [(1,)]


def test_of_two_amounts_for_one_deposit_one_is_booked(
    operator: Callable[..., Caller], admin: Callable[[], Caller]
) -> None:
    caller = operator("a", 0)
    path = f"/api/admin/operators/{caller.id}/deposits"
    asks: list[Ask] = [
        lambda it, amount=amount: it.post(path, {"amountUsdc": amount, "reference": "wire 1"}) for amount in ("5", "6")
    ]
    answers = all_at_once(admin(), asks)
    assert statuses(answers) == {200: 1, 409: 1}
    assert balances()["operator:op_a"] == int(one(answers, 200)["amountUsdc"])


def a_manifest(count: int, **claims: Any) -> dict[str, Any]:
    written = json.dumps({"roundId": 1, **claims})
    digest = hashlib.sha256(written.encode()).hexdigest()
    return {"roundId": 1, "manifestJson": written, "manifestHash": digest, "ticketCount": count}


def test_a_manifest_sent_twenty_times_at_once_is_counted_once(operator: Callable[[str], Caller]) -> None:
    caller = operator("a")
    submit(a_round([caller.id, operator("b").id]), caller.id, some_tickets(3))
    answers = all_at_once(caller, [lambda it: it.post("/api/operator/manifest", a_manifest(3))] * 20)
    assert statuses(answers) == {200: 20}
    assert {(it.get_json()["sealedCount"], it.get_json()["totalInvited"]) for it in answers} == {(1, 2)}
    assert rows("SELECT count(*) FROM round_events WHERE type = 'MANIFEST_SUBMITTED'") == [(1,)]


def test_of_two_manifests_one_is_on_record_and_the_other_is_a_conflict(operator: Callable[[], Caller]) -> None:
    caller = operator()
    a_round([caller.id])
    both = [a_manifest(0, note=note) for note in ("one", "other")]
    asks: list[Ask] = [lambda it, sent=sent: it.post("/api/operator/manifest", sent) for sent in both]
    answers = all_at_once(caller, asks)
    assert statuses(answers) == {200: 1, 409: 1}
    [lost] = [answer for answer in answers if answer.status_code == 409]
    assert_error(lost, 409, "manifest_conflict")
    won = both[1 - answers.index(lost)]
    assert rows("SELECT manifest_hash FROM manifests") == [(won["manifestHash"],)]


@pytest.mark.parametrize("attempt", range(6))
def test_tickets_and_a_manifest_at_once_agree_in_either_order(operator: Callable[[], Caller], attempt: int) -> None:
    caller = operator()
    submit(a_round([caller.id]), caller.id, some_tickets(3))
    more = a_batch(*(a_ticket(place) for place in range(10, 15)))
    sealing: Ask = lambda it: it.post("/api/operator/manifest", a_manifest(3))  # noqa: E731
    selling: Ask = lambda it: it.post("/api/operator/tickets", more)  # noqa: E731
    asks = [sealing, selling] if attempt % 2 else [selling, sealing]
    answers = dict(zip([ask is sealing for ask in asks], all_at_once(caller, asks), strict=True))
    sealed, sold = answers[True], answers[False]
    if sealed.status_code == 200:
        assert_error(sold, 409, "manifest_submitted")
    else:
        assert_error(sealed, 422, "manifest_mismatch")
        assert sold.status_code == 200
        assert caller.post("/api/operator/manifest", a_manifest(8)).status_code == 200
    [(stored, counted, claimed)] = rows(
        "SELECT (SELECT count(*) FROM tickets), p.ticket_count, m.ticket_count FROM participations p, manifests m"
    )
    assert stored == counted == claimed == (3 if sealed.status_code == 200 else 8)


def test_rounds_opened_at_once_are_numbered_without_a_gap(
    operator: Callable[[], Caller], admin: Callable[[], Caller]
) -> None:
    operator()
    answers = all_at_once(admin(), [lambda it: it.post("/api/admin/rounds", deadlines())] * 10)
    assert statuses(answers) == {201: 10}
    assert sorted(answer.get_json()["id"] for answer in answers) == list(range(1, 11))


def test_a_round_that_seals_amid_batches_keeps_every_accepted_ticket_and_no_other(
    operator: Callable[[str], Caller],
) -> None:
    caller, other = operator("a"), operator("b")
    round_id = a_round([caller.id, other.id])
    manifest(round_id, other.id)

    def sell(start: int) -> Ask:
        batch = a_batch(*(a_ticket(place) for place in range(start, start + 20)))
        return lambda it: it.post("/api/operator/tickets", batch)

    def seal(it: Caller) -> TestResponse:
        move_clock_to(round_id, "seal_at")
        advance_round(round_id)
        return it.get(f"/api/public/rounds/{round_id}")

    *sold, sealed = all_at_once(caller, [*(sell(20 * place) for place in range(24)), seal])
    assert sealed.status_code == 200
    advance_round(round_id)  # who seals steps back while somebody writes, and is called again
    assert the_round(round_id).state is State.SEALING
    accepted = 0
    for answer in sold:
        if answer.status_code == 200:
            accepted += answer.get_json()["ticketsAccepted"]
        else:
            assert_error(answer, 409, "sales_ended")
    assert rows("SELECT count(*) FROM tickets") == [(accepted,)]
    assert rows("SELECT ticket_count FROM participations WHERE operator_id = 'op_a'") == [(accepted,)]


def test_a_round_failed_by_many_at_once_keeps_the_first_reason(
    operator: Callable[[], Caller], admin: Callable[[], Caller]
) -> None:
    round_id = a_round([operator().id])
    asks: list[Ask] = [
        lambda it, reason=reason: it.post(f"/api/admin/rounds/{round_id}/fail", {"reason": reason})
        for reason in map(str, range(10))
    ]
    assert statuses(all_at_once(admin(), asks)) == {202: 10}
    [(first,)] = rows("SELECT reason FROM audit_log ORDER BY id LIMIT 1")
    assert rows("SELECT abort_reason FROM rounds") == [(first,)]
    assert rows("SELECT count(*) FROM audit_log") == [(10,)]


def test_who_finds_no_connection_free_in_time_is_told_to_come_again(
    anybody: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = engine().pool
    monkeypatch.setattr(pool, "_timeout", 0.05)
    with ExitStack() as taken:
        for _ in range(settings().database_pool_size + 10):
            taken.enter_context(engine().connect())
        assert_error(anybody.get("/api/public/rounds"), 503, "unavailable")
        assert anybody.get("/health").status_code == 200
    assert anybody.get("/api/public/rounds").status_code == 200
