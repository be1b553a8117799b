"""Who may do what: one table, and everybody walks up to every door of it.

One rule: ``MAY`` names every (method, path) of the application, and nothing else does. An endpoint without a row fails
the first test, a row without an endpoint too; the other tests are made from the table.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import text
from werkzeug.test import TestResponse

from models.credentials import AdminRole
from models.session import transaction
from tests.app.conftest import Caller, assert_error
from tests.app.test_applications import FORM
from tests.app.visitors import OPERATOR as AN_OPERATOR
from tests.app.visitors import STRANGER, SUSPENDED, Visitor, everybody
from tests.factories import a_round, an_operator, rows, some_tickets, submit


@dataclass(frozen=True)
class Door:
    """Who is let in. ``kind``: by what; ``roles``: of admins, ``root`` besides; ``about_others``: a body that names
    what belongs to another operator (round 1), which is then refused with 403 or 404."""

    kind: str
    roles: frozenset[str] = frozenset()
    about_others: Mapping[str, Any] | None = None


ANYBODY = Door("anybody")
APPLICANT = Door("whoever holds the application's token")
OPERATOR = Door("operator")
BY_SECRET = Door("whoever knows a secret that stands in the body")


def operator_of(**about_others: Any) -> Door:
    """Operators, each for its own rounds: this body names another's."""
    return Door("operator", about_others=about_others)


def admin(*roles: AdminRole) -> Door:
    """Admins of these roles, and root."""
    return Door("admin", frozenset({*roles, AdminRole.ROOT}))


A_TICKET = dict(
    zip(
        ("ticketId", "jackpotNumber", "bonus1", "bonus2", "bonus3", "bonus4", "bonus5", "isQuickPick"),
        some_tickets(1)[0],
        strict=True,
    )
)
MANIFEST = {"manifestJson": "{}", "manifestHash": hashlib.sha256(b"{}").hexdigest(), "ticketCount": 0}
REVIEWER, TREASURER, ONCALL = AdminRole.REVIEWER, AdminRole.TREASURER, AdminRole.ONCALL

MAY: dict[tuple[str, str], Door] = {
    ("GET", "/health"): ANYBODY,
    ("GET", "/openapi.json"): ANYBODY,
    ("GET", "/docs"): ANYBODY,
    ("GET", "/docs/guide"): ANYBODY,
    ("GET", "/docs/sdk"): ANYBODY,
    ("GET", "/docs/player"): ANYBODY,
    ("GET", "/docs/protocol"): ANYBODY,
    ("GET", "/docs/style.css"): ANYBODY,
    ("GET", "/docs/icon.svg"): ANYBODY,
    ("GET", "/health/ready"): ANYBODY,
    ("GET", "/metrics"): ANYBODY,  # the edge does not let the public network through to it
    ("GET", "/api/public/rounds"): ANYBODY,
    ("GET", "/api/public/rounds/<round_id>"): ANYBODY,
    ("GET", "/api/public/rounds/<round_id>/events"): ANYBODY,
    ("GET", "/api/public/rounds/<round_id>/proof"): ANYBODY,
    ("GET", "/api/public/rounds/<round_id>/tickets/<operator_id>"): ANYBODY,
    ("GET", "/api/public/rounds/<round_id>/tickets/<operator_id>/<ticket_id>/proof"): ANYBODY,
    ("GET", "/api/public/rounds/<round_id>/tickets/<operator_id>/<ticket_id>/absence"): ANYBODY,
    ("GET", "/api/public/draw/<any_id>"): ANYBODY,
    ("GET", "/api/public/draw/<any_id>/winners"): ANYBODY,
    ("GET", "/api/public/sub-prizes/<any_id>"): ANYBODY,
    ("GET", "/api/public/history"): ANYBODY,
    ("GET", "/api/public/jackpot"): ANYBODY,
    ("GET", "/api/public/jackpot-counter"): ANYBODY,
    ("GET", "/api/public/odds"): ANYBODY,
    ("GET", "/api/public/stats"): ANYBODY,
    ("GET", "/api/public/operators"): ANYBODY,
    ("GET", "/api/public/operators/<operator_id>"): ANYBODY,
    ("POST", "/api/public/apply"): ANYBODY,
    ("GET", "/api/public/application-status/<application_id>"): APPLICANT,
    ("POST", "/api/auth/operator/login"): BY_SECRET,
    ("POST", "/api/auth/refresh"): BY_SECRET,
    ("POST", "/api/auth/logout"): ANYBODY,  # whatever token it is given is not usable afterwards, as asked
    ("POST", "/api/operator/tickets"): operator_of(roundId=1, tickets=[A_TICKET]),
    ("POST", "/api/operator/manifest"): operator_of(roundId=1, **MANIFEST),
    ("POST", "/api/operator/nonce"): operator_of(roundId=1, nonce="0" * 64),
    ("POST", "/api/operator/check-tickets"): operator_of(roundId=1),
    ("POST", "/api/operator/payouts"): operator_of(roundId=1, payouts=[{"ticketId": "t-0", "tier": 1}]),
    ("POST", "/api/operator/test-webhook"): OPERATOR,
    ("POST", "/api/operator/test-webhook/all"): OPERATOR,
    ("GET", "/api/operator/webhook-logs"): OPERATOR,
    ("POST", "/api/operator/heartbeat"): OPERATOR,
    ("PUT", "/api/operator/webhook"): OPERATOR,
    ("GET", "/api/operator/rounds"): OPERATOR,
    ("GET", "/api/operator/rounds/<round_id>"): operator_of(),  # the path names it
    ("GET", "/api/operator/me"): OPERATOR,
    ("GET", "/api/operator/balance"): OPERATOR,
    ("GET", "/api/admin/applications"): admin(REVIEWER),
    ("POST", "/api/admin/applications/<application_id>/approve"): admin(REVIEWER),
    ("POST", "/api/admin/applications/<application_id>/reject"): admin(REVIEWER),
    ("GET", "/api/admin/operators"): admin(REVIEWER, ONCALL),
    ("GET", "/api/admin/operators/<operator_id>"): admin(REVIEWER, ONCALL),
    ("PATCH", "/api/admin/operators/<operator_id>"): admin(),
    ("POST", "/api/admin/operators/<operator_id>/rotate-key"): admin(),
    ("GET", "/api/admin/deliveries"): admin(ONCALL),
    ("GET", "/api/admin/deliveries/<delivery_id>"): admin(ONCALL),
    ("POST", "/api/admin/deliveries/<delivery_id>/requeue"): admin(ONCALL),
    ("POST", "/api/admin/deliveries/requeue"): admin(ONCALL),
    ("GET", "/api/admin/requeues"): admin(ONCALL),
    ("GET", "/api/admin/requeues/<job_id>"): admin(ONCALL),
    ("POST", "/api/admin/requeues/<job_id>/cancel"): admin(ONCALL),
    ("GET", "/api/admin/endpoints"): admin(ONCALL),
    ("POST", "/api/admin/endpoints/<operator_id>/pause"): admin(ONCALL),
    ("POST", "/api/admin/endpoints/<operator_id>/resume"): admin(ONCALL),
    ("GET", "/api/admin/queues"): admin(ONCALL),
    ("POST", "/api/admin/queues/<name>/pause"): admin(ONCALL),
    ("POST", "/api/admin/queues/<name>/resume"): admin(ONCALL),
    ("POST", "/api/admin/operators/<operator_id>/deposits"): admin(TREASURER),
    ("GET", "/api/admin/ledger"): admin(TREASURER),
    ("GET", "/api/admin/ledger/accounts"): admin(TREASURER),
    ("GET", "/api/admin/audit"): admin(),
    ("POST", "/api/admin/rounds"): admin(ONCALL),
    ("GET", "/api/admin/rounds/<round_id>"): admin(ONCALL),
    ("POST", "/api/admin/rounds/<round_id>/fail"): admin(ONCALL),
    ("POST", "/api/admin/rounds/<round_id>/retabulate"): admin(ONCALL),
}

GUARDED = {way: door for way, door in MAY.items() if door.kind in ("operator", "admin", APPLICANT.kind)}


def test_every_endpoint_stands_in_the_table_and_every_row_has_an_endpoint(application: Flask) -> None:
    there = {
        (method, rule.rule)
        for rule in application.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    assert there - MAY.keys() == set(), "endpoints of which the table does not say who may use them"
    assert MAY.keys() - there == set(), "rows of the table without an endpoint"


def knock(client: FlaskClient, way: tuple[str, str], headers: Mapping[str, str], **body: Any) -> TestResponse:
    """One request to a door; what stands in angle brackets in its path is 1."""
    method, rule = way
    return client.open(re.sub("<[^>]*>", "1", rule), method=method, headers=dict(headers), **body)


def refusal(door: Door, visitor: Visitor) -> tuple[int, str | None] | None:
    """How this visitor is refused at this door: status and code; None when it is let in."""
    unknown = (401, None)
    if door.kind == "operator":
        return {AN_OPERATOR: None, SUSPENDED: (403, "suspended")}.get(visitor.kind, unknown)
    if door.kind == "admin" and visitor.kind in set(AdminRole):
        return None if visitor.kind in door.roles else (403, "wrong_role")
    return None if door.kind == "anybody" else unknown


def on_record() -> dict[str, tuple[int, str | None]]:
    """How many rows every table has, and a digest of all that stands in them."""
    tables = rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename")
    each = [
        f"SELECT '{name}', count(*), md5(string_agg(row::text, ';' ORDER BY row::text)) FROM \"{name}\" row"
        for (name,) in tables
    ]
    return {name: (count, digest) for name, count, digest in rows(" UNION ALL ".join(each))}


@pytest.fixture
def visitors(application: Flask) -> list[Visitor]:
    """Everybody; and a round, number 1, that concerns op_b alone."""
    came = everybody()
    an_operator("b")
    with transaction() as session:
        session.execute(text("UPDATE operators SET webhook_url = 'http://127.0.0.1:9/' WHERE id = 'op_b'"))
    submit(a_round(["op_b"]), "op_b", some_tickets(3))
    return came


def test_who_may_not_is_refused_before_anything_is_read_or_written(anybody: Caller, visitors: list[Visitor]) -> None:
    before, holes = on_record(), []
    for way, door in GUARDED.items():
        for visitor in visitors:
            if (expected := refusal(door, visitor)) is not None:
                answer = knock(anybody.client, way, visitor.headers, data=b"{not json", content_type="application/json")
                if answer.status_code != expected[0]:
                    # One hole is seldom alone: all of them are to be seen.
                    holes.append(f"{way} answers {answer.status_code}, not {expected[0]}, to {visitor.name}")
                    continue
                body = assert_error(answer, *expected)
                assert body["code"] in ("unauthenticated", "invalid_token", "suspended", "wrong_role")
                assert ("WWW-Authenticate" in answer.headers) == (answer.status_code == 401)
    assert not holes, "\n".join(holes)
    assert on_record() == before


def test_who_may_is_let_in(anybody: Caller, visitors: list[Visitor]) -> None:
    entered = {visitor.kind: 0 for visitor in visitors}
    for way, door in MAY.items():
        for visitor in visitors:
            public = door.kind == "anybody"
            if refusal(door, visitor) is None and (not public or visitor.name in ("nobody", "one letter for a key")):
                body = {} if way[0] == "GET" else {"json": {}}
                answer = knock(anybody.client, way, visitor.headers, **body)
                if answer.status_code == 403:  # past the door, and then it was another's round
                    assert door.about_others == {}, (way, visitor.name, answer.text)
                    assert_error(answer, 403, "not_invited")
                assert answer.status_code != 401, (way, visitor.name, answer.text)
                assert answer.status_code < 500, (way, visitor.name, answer.text)
                entered[visitor.kind] += 1
    assert entered.pop(SUSPENDED) == 0
    assert all(entered.values()), entered


def test_an_answer_that_was_for_one_reader_is_kept_for_no_other(anybody: Caller, visitors: list[Visitor]) -> None:
    for way, door in MAY.items():
        if door.kind == "anybody" and way[0] == "GET":
            continue
        [reader] = [
            visitor
            for visitor in visitors
            if visitor.name == ("an operator by key" if door.kind == "operator" else "the root")
        ]
        for headers in (reader.headers, {}):
            answer = knock(anybody.client, way, headers, **({} if way[0] == "GET" else {"json": {}}))
            assert answer.headers["Cache-Control"] == "no-store", way
        if way in GUARDED:
            assert answer.status_code == 401, way


def test_no_other_method_is_a_way_around_the_guard(anybody: Caller, visitors: list[Visitor]) -> None:
    for method, rule in GUARDED:
        if method == "GET":
            assert knock(anybody.client, ("HEAD", rule), {}).status_code == 401, rule
        if not rule.startswith("/api/public/"):
            assert knock(anybody.client, ("OPTIONS", rule), {}).status_code == 401, rule
        for other in ("GET", "POST", "PUT", "PATCH", "DELETE", "TRACE"):
            if (other, rule) not in MAY:
                answer = knock(anybody.client, (other, rule), {})
                # 401: the path, read differently, leads to another endpoint, which has a guard as well.
                assert_error(answer, 401 if answer.status_code == 401 else 405)


def test_an_operator_neither_sees_nor_changes_what_is_anothers(anybody: Caller, visitors: list[Visitor]) -> None:
    before = on_record()
    [caller] = [visitor for visitor in visitors if visitor.name == "an operator by key"]
    theirs = ["op_b", *(str(delivery) for (delivery,) in rows("SELECT id FROM deliveries WHERE operator_id = 'op_b'"))]
    assert len(theirs) > 1
    for way, door in MAY.items():
        if door.about_others is not None:
            sent = {} if way[0] == "GET" else {"json": dict(door.about_others)}
            answer = knock(anybody.client, way, caller.headers, **sent)
            assert_error(answer, 404 if answer.status_code == 404 else 403)
        elif door.kind == "operator" and way[0] == "GET":
            answer = knock(anybody.client, way, caller.headers)
            assert answer.status_code == 200
            assert [each for each in theirs if each in answer.text] == [], way
    assert on_record() == before


def test_an_application_is_shown_for_its_own_token_only(anybody: Caller, visitors: list[Visitor]) -> None:
    mine, other = (
        anybody.post("/api/public/apply", FORM | {"contactEmail": f"{name}@alba.example"}).get_json()
        for name in ("mine", "other")
    )
    before = on_record()
    path = f"/api/public/application-status/{mine['applicationId']}"
    token = mine["applicationToken"]
    assert anybody.get(path, headers={"X-Application-Token": token}).status_code == 200
    for wrong in (other["applicationToken"], "", " ", token[:-1], token + "x", token.swapcase(), "é", "x" * 5_000):
        answer = anybody.get(path, headers={"X-Application-Token": wrong})
        assert_error(answer, 401, "unauthenticated")
        assert "WWW-Authenticate" in answer.headers
    for visitor in visitors:
        assert_error(anybody.get(path, headers=dict(visitor.headers)), 401)
    for nobodys in ("app_0000000000000000", "1", "%00", "é", "a" * 300):
        asked = anybody.get(f"/api/public/application-status/{nobodys}", headers={"X-Application-Token": token})
        assert_error(asked, 401, "unauthenticated")
    assert on_record() == before


def test_no_wrong_secret_is_exchanged_for_tokens(anybody: Caller, visitors: list[Visitor]) -> None:
    before = on_record()
    strangers = [visitor for visitor in visitors if visitor.kind == STRANGER]
    others = [visitor for visitor in visitors if visitor.kind in (AN_OPERATOR, *AdminRole)]
    wrong = {
        ("/api/auth/operator/login", "apiKey"): [it.headers.get("X-Service-Key") for it in strangers],
        ("/api/auth/refresh", "refreshToken"): [it for one in others for it in one.headers.values()],
    }
    for (path, field), secrets in wrong.items():
        for secret in secrets:
            if secret is not None and len(secret) <= 200:
                answer = anybody.post(path, {field: secret})
                assert_error(answer, 401)
                assert "WWW-Authenticate" in answer.headers
    assert on_record() == before
