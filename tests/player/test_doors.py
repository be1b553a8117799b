"""Who may do what: everybody walks up to every door of a node, and the wrong credential opens none.

One rule: which doors are open to all stands in OPEN; every other blueprint has a guard.
"""

from __future__ import annotations

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from player.api.credentials import ask_player, ask_staff
from player.models.session import transaction
from player.models.staff import issue_staff_key
from tests.player.factories import a_player
from tests.player.operations import Operation, operations

OPEN = {"health", "rounds", "auth", "payment_callbacks", "sandbox_payments"}
"""Blueprints without a guard. Callbacks are let in by their signatures, the sandbox's form by its token."""


def knock(client: FlaskClient, each: Operation, headers: dict[str, str]) -> TestResponse:
    body = {"json": {}} if "requestBody" in each.told else {}
    return client.open(each.url(), method=each.method, headers=headers, **body)


def test_every_blueprint_has_a_guard_or_is_known_to_have_none(client: FlaskClient) -> None:
    from player.api.factory import BLUEPRINTS

    assert {blueprint.name for blueprint, guard in BLUEPRINTS if guard is None} == OPEN
    for blueprint, guard in BLUEPRINTS:
        if guard is not None:
            prefix = str(blueprint.url_prefix)
            assert guard is (ask_staff if prefix.startswith("/api/admin") else ask_player), blueprint.name


def test_a_credential_opens_its_own_doors_and_no_other(client: FlaskClient) -> None:
    with transaction() as session:
        _, key = issue_staff_key(session, "Ana")
    visitors = {
        None: {},
        "accessToken": a_player(client).headers,
        "staffKey": {"X-Admin-Key": key},
        "a staff key as a token": {"Authorization": f"Bearer {key}"},
        "a token as a staff key": {"X-Admin-Key": a_player(client).headers["Authorization"].partition(" ")[2]},
        "both kinds, wrong": {"X-Admin-Key": "x", "Authorization": "Bearer x"},
    }
    for each in operations(client.application):
        for kind, headers in visitors.items():
            answer = knock(client, each, headers)
            let_in = each.credential in (None, kind)
            if each.credential is not None:
                assert (answer.status_code != 401) == let_in, f"{each} with {kind}: {answer.status_code}"
            assert answer.status_code < 500, f"{each} with {kind}"
            if answer.status_code == 401:
                assert set(answer.json) == {"error", "code"}
                assert answer.headers["WWW-Authenticate"]
            if kind == "accessToken":
                headers.update(a_player(client).headers)
