"""An operator's own affairs: profile, heartbeat, webhook address, deposits; and the service's health."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from flask import Flask

from models.settings import settings
from tests.app.conftest import Caller, assert_error
from tests.dns_server import naming
from tests.factories import balances, rows


def test_a_profile_has_every_published_field(operator: Callable[[], Caller]) -> None:
    profile = operator().get("/api/operator/me").get_json()
    assert set(profile) == {
        *("operatorId", "name", "jurisdiction", "active", "reputationScore", "totalRoundsParticipated"),
        *("totalRoundsWon", "registeredAt", "totalRoundsEscrowed", "totalRoundsExcluded", "totalPayoutsOnTime"),
        *("address", "webhookUrl", "lastHeartbeat", "totalPayoutsLate", "onChainId", "onChainBondAmount"),
        *("onChainBondStatus", "onChainLastAttestation"),
    }
    assert profile["reputationScore"] == 100
    assert profile["lastHeartbeat"] is None


def test_a_heartbeat_is_noted_and_the_next_one_awaited(operator: Callable[[], Caller]) -> None:
    caller = operator()
    answer = caller.post("/api/operator/heartbeat").get_json()
    assert (answer["success"], answer["operatorId"]) == (True, "op_a")
    assert caller.get("/api/operator/me").get_json()["lastHeartbeat"] == answer["timestamp"]
    assert rows("SELECT due_at > now() FROM operators") == [(True,)]


def test_a_webhook_address_is_registered(operator: Callable[[], Caller]) -> None:
    caller, url = operator(), "http://127.0.0.1:9/hook?for=a"
    answer = caller.put("/api/operator/webhook", {"url": url})
    assert answer.get_json() == {"success": True, "operatorId": "op_a", "webhookUrl": url}
    assert caller.get("/api/operator/me").get_json()["webhookUrl"] == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "hook",
        "ftp://127.0.0.1/",
        "http://",
        "http://10.0.0.1/",
        "http://192.168.1.1/",
        "http://169.254.169.254/",
        "http://[fe80::1]/",
        "http://0.0.0.0/",
        "http://224.0.0.1/",
        "http://me:secret@127.0.0.1/",
        "http://127.0.0.1/#part",
        "http://127.0.0.1:0/",
        "http://127.0.0.1:99999/",
        "http://127.0.0.1/a b",
        "http://nowhere.invalid/",
        "http://127.0.0.1/\r\nX-Header: 1",
        "http://127.0.0.1/" + "a" * 2_100,
    ],
)
def test_an_address_we_would_not_call_is_not_registered(operator: Callable[[], Caller], url: str) -> None:
    assert_error(operator().put("/api/operator/webhook", {"url": url}), 422)
    assert rows("SELECT webhook_url FROM operators") == [(None,)]


def test_an_address_whose_name_nobody_can_look_up_now_may_be_tried_again(
    operator: Callable[[], Caller], monkeypatch: pytest.MonkeyPatch
) -> None:
    caller, body = operator(), {"url": "https://shop.example/hook"}
    with naming() as names:
        names.has("shop.example.", "93.184.215.14")
        monkeypatch.setenv("DNS_SERVERS", names.address)
        settings.cache_clear()
        with monkeypatch.context() as impatient:
            impatient.setattr("tasks.resolver.REGISTRATION_SECONDS", 0.2)
            names.dead = True
            answer = caller.put("/api/operator/webhook", body)
            assert "try again" in assert_error(answer, 503, "unavailable")["error"]
        names.dead = False
        assert caller.put("/api/operator/webhook", body).status_code == 200
        names.has("shop.example.", "93.184.215.14", "10.0.0.1")
        assert_error(caller.put("/api/operator/webhook", body), 422, "refused_address")
        assert_error(caller.put("/api/operator/webhook", {"url": "https://no.example/"}), 422, "unknown_host")
    assert rows("SELECT webhook_url FROM operators") == [(body["url"],)]


def test_outside_the_sandbox_an_address_is_public_and_https(
    operator: Callable[[], Caller], monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = operator()
    monkeypatch.setenv("SANDBOX", "0")
    settings.cache_clear()
    for url in ("http://127.0.0.1/", "https://127.0.0.1/", "http://93.184.215.14/", "https://[::1]/"):
        assert_error(caller.put("/api/operator/webhook", {"url": url}), 422, "refused_address")
    assert caller.put("/api/operator/webhook", {"url": "https://93.184.215.14/hook"}).status_code == 200


def test_a_deposit_counts_once_by_its_reference(
    operator: Callable[..., Caller], admin: Callable[[str], Caller]
) -> None:
    operator("a", 0)
    path, body = "/api/admin/operators/op_a/deposits", {"amountUsdc": "1500000", "reference": "wire 7"}
    caller = admin("treasurer")
    for _ in range(2):
        assert caller.post(path, body).get_json() == {
            "operatorId": "op_a",
            "amountUsdc": "1500000",
            "balanceUsdc": "1500000",
            "reference": "wire 7",
        }
    assert_error(caller.post(path, body | {"amountUsdc": "2"}), 409, "deposit_conflict")
    assert_error(caller.post("/api/admin/operators/op_x/deposits", body), 404)
    assert_error(admin("reviewer").post(path, body), 403, "wrong_role")
    assert balances() == {"external": -1_500_000, "operator:op_a": 1_500_000}
    assert rows("SELECT action, subject FROM audit_log") == [("operator.deposit", "op_a")]


@pytest.mark.parametrize("amount", ["0", "-1", "1.5", "", " 1", "01", "9" * 20, "١", 5, None, True, 1e3])
def test_what_is_no_amount_is_not_deposited(
    operator: Callable[..., Caller], admin: Callable[[], Caller], amount: object
) -> None:
    operator("a", 0)
    body = {"amountUsdc": amount, "reference": "wire 7"}
    assert "amountUsdc" in assert_error(admin().post("/api/admin/operators/op_a/deposits", body), 422)["details"]
    assert balances() == {}


def test_it_says_that_it_is_alive_and_ready(anybody: Caller) -> None:
    health = anybody.get("/health").get_json()
    assert set(health) == {"status", "version", "timestamp"}
    ready = anybody.get("/health/ready").get_json()
    assert ready == {"status": "ready", "checks": {"database": "ok", "redis": "ok"}}


def test_a_missing_migration_and_a_redis_away_are_said(anybody: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    from sqlalchemy import text

    from models.session import transaction

    with transaction() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '0000'"))
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:1/0")
    settings.cache_clear()
    details = assert_error(anybody.get("/health/ready"), 503, "unavailable")["details"]
    assert "alembic upgrade head" in details["database"]
    assert details["redis"] == "unreachable"


def test_the_command_line_makes_admin_keys(application: Flask, anybody: Caller) -> None:
    command = ["ops", "admin-key", "create", "--role", "oncall", "--name", "night shift"]
    made = application.test_cli_runner().invoke(args=[*command, "--json"])
    assert made.exit_code == 0
    import json

    key = json.loads(made.output)["adminKey"]
    assert_error(anybody.get("/api/admin/rounds/1", headers={"X-Service-Admin-Key": key}), 404)
    shown = application.test_cli_runner().invoke(args=command)
    assert "shown only now" in shown.output
    assert application.test_cli_runner().invoke(args=[*command[:4], "king", "--name", "x"]).exit_code == 2
