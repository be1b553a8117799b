"""``flask ops operators`` and ``applications``: companies let in, looked after and kept out from a prompt."""

from __future__ import annotations

from collections.abc import Callable

from models.applications import apply
from models.operators import Operator
from models.session import transaction
from tests.app.conftest import Caller, assert_error
from tests.app.ops import Shell
from tests.factories import an_operator, balances, rows


def an_application(name: str = "Big Casino Ltd") -> str:
    with transaction() as session:
        made, _ = apply(
            session,
            company_name=name,
            jurisdiction="Malta",
            gaming_license_number="MGA/B2C/1",
            contact_email=f"{len(name)}@casino.example",
            contact_name="Jane Doe",
            ethereum_address=f"0x{'a' * 40}",
        )
    return made


def test_a_company_is_approved_and_its_key_opens_the_door(shell: Shell, anybody: Caller) -> None:
    application = an_application()
    assert "Big Casino Ltd" in shell.run("applications", "list", "--status", "pending").stdout
    assert "MGA/B2C/1" in shell.run("applications", "show", application).stdout
    approved = shell.json("applications", "approve", application, "--note", "welcome", "--as", "nina")
    assert anybody.get("/api/operator/me", headers={"X-Service-Key": approved["apiKey"]}).status_code == 200
    assert "approved already" in shell.refused("applications", "approve", application)
    assert "There are no such applications." in shell.run("applications", "list", "--status", "pending").stdout
    assert rows("SELECT actor, action, reason FROM audit_log") == [
        ("nina (command line)", "application.approve", "welcome")
    ]


def test_a_company_is_rejected(shell: Shell) -> None:
    application = an_application()
    assert "is rejected" in shell.run("applications", "reject", application, "--note", "no licence").stdout
    assert shell.json("applications", "show", application)["reviewNote"] == "no licence"
    for act in ("show", "approve", "reject"):
        assert "no such application" in shell.refused("applications", act, "app_x")


def test_a_reviewer_reads_all_that_the_company_wrote(admin: Callable[..., Caller], shell: Shell) -> None:
    an_application()
    [shown] = admin("reviewer").get("/api/admin/applications").get_json()["applications"]
    assert (shown["gamingLicenseNumber"], shown["contactName"]) == ("MGA/B2C/1", "Jane Doe")
    assert shell.json("applications", "list")["applications"] == [shown]


def test_a_name_does_not_move_anybodys_cursor(shell: Shell) -> None:
    an_application("Evil\x1b[2J\x1b[31m \x07‮Ltd [bold]x[/bold]")
    with transaction() as session:
        session.add(Operator(id="op_e", name="Evil\x1b[2J\r\nLtd", jurisdiction="Malta", address=f"0x{'0' * 40}"))
    for words in (("applications", "list"), ("operators", "list"), ("operators", "show", "op_e")):
        printed = shell.run(*words).stdout
        assert not {"\x1b", "\x07", "\r", "‮"} & set(printed)
    assert "[bold]" in shell.run("applications", "list").stdout


def test_operators_are_shown_as_the_api_shows_them(shell: Shell, admin: Callable[..., Caller]) -> None:
    an_operator("a", 1_500_000_001)
    an_operator("b", 0)
    assert shell.json("operators", "list") == admin().get("/api/admin/operators").get_json()
    assert shell.json("operators", "show", "op_a") == admin().get("/api/admin/operators/op_a").get_json()
    assert "1,500.000001" in shell.run("operators", "list").stdout
    assert "1,500.000001 USDC" in shell.run("operators", "show", "op_a").stdout
    assert "no such operator" in shell.refused("operators", "show", "op_x")


def test_an_operator_is_suspended_and_let_in_again(shell: Shell, operator: Callable[..., Caller]) -> None:
    caller = operator()
    assert "suspended" in shell.run("operators", "suspend", "op_a", "--reason", "licence withdrawn").stdout
    assert_error(caller.get("/api/operator/me"), 403, "suspended")
    assert shell.json("operators", "reinstate", "op_a", "--reason", "renewed")["active"] is True
    assert caller.get("/api/operator/me").status_code == 200
    assert rows("SELECT action FROM audit_log ORDER BY id") == [("operator.suspend",), ("operator.reinstate",)]


def test_a_stolen_key_is_replaced_at_once(shell: Shell, operator: Callable[..., Caller]) -> None:
    caller = operator()
    made = shell.json("operators", "rotate-key", "op_a", "--overlap", "0", "--reason", "stolen")
    assert_error(caller.get("/api/operator/me"), 401)
    assert caller.get("/api/operator/me", headers={"X-Service-Key": made["apiKey"]}).status_code == 200
    told = shell.run("operators", "rotate-key", "op_a", "--overlap", "60", "--reason", "again").stdout
    assert "shown only now" in told
    assert "The old key ends at" in told
    assert told.split("sk_")[1].split()[0] not in str(rows("SELECT details, reason FROM audit_log"))
    shell.refused("operators", "rotate-key", "op_a", "--overlap", "604801", "--reason", "x", ends=2)


def test_a_deposit_is_recorded_once(shell: Shell) -> None:
    an_operator("a", 0)
    command = ("operators", "deposit", "op_a", "--micro-usdc", "1500000", "--reference", "wire 7")
    for _ in range(2):
        assert "The balance is 1.50 USDC." in shell.run(*command).stdout
    assert balances() == {"external": -1_500_000, "operator:op_a": 1_500_000}
    assert "another amount" in shell.refused(*command[:4], "2", *command[5:])
    for wrong in ("1.5", "0", "x", "-1"):
        shell.refused(*command[:4], wrong, *command[5:], ends=2)
    assert rows("SELECT count(*) FROM audit_log") == [(1,)]
