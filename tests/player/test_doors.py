"""Who may do what: everybody walks up to every door of a node, and the wrong credential opens none.

One rule: which doors are open to all stands in OPEN; every other blueprint has a guard.
"""

from __future__ import annotations

from collections.abc import Callable

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from player.api.credentials import ask_player, ask_staff
from player.models.session import transaction
from player.models.staff import issue_staff_key
from tests.player.factories import a_player, bearer
from tests.player.operations import Operation, operations

OPEN = {"webhooks", "health", "rounds", "auth", "payment_callbacks", "sandbox_payments"}
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
    somebody = a_player()
    visitors: dict[str | None, Callable[[], dict[str, str]]] = {
        None: dict,
        # A session of its own for each door: behind some of them it ends.
        "accessToken": lambda: bearer(somebody.id),
        "staffKey": lambda: {"X-Admin-Key": key},
        "each in the other's place": lambda: {
            "X-Admin-Key": somebody.headers["Authorization"].partition(" ")[2],
            "Authorization": f"Bearer {key}",
        },
    }
    for each in operations(client.application):
        for kind, headers in visitors.items():
            answer = knock(client, each, headers())
            if each.credential is not None:
                assert (answer.status_code != 401) == (each.credential == kind), f"{each} with {kind}"
            assert answer.status_code < 500, f"{each} with {kind}"
            if answer.status_code == 401:
                assert set(answer.json) == {"error", "code"}
                assert answer.headers["WWW-Authenticate"]
