"""From application to the first token: apply, read the status, be approved, log in, refresh, log out."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import jwt
import pytest
from sqlalchemy import text

from app.tokens import issue_access_token
from models.session import transaction
from models.settings import settings
from tests.app.conftest import Caller, assert_error
from tests.factories import rows

FORM = {
    "companyName": "Alba Games",
    "jurisdiction": "Malta",
    "gamingLicenseNumber": "MGA/1",
    "contactEmail": "ops@alba.example",
    "contactName": "A. Alba",
    "ethereumAddress": "0x" + "aB" * 20,
    "website": "https://alba.example",
}


def test_an_application_is_filed_read_and_approved(anybody: Caller, admin: Callable[[str], Caller]) -> None:
    answer = anybody.post("/api/public/apply", FORM)
    assert answer.status_code == 201
    filed = answer.get_json()
    assert set(filed) == {"success", "applicationId", "applicationToken", "status", "message", "warning"}
    path = f"/api/public/application-status/{filed['applicationId']}"
    token = {"X-Application-Token": filed["applicationToken"]}
    status = anybody.get(path, headers=token).get_json()
    assert set(status) == {"applicationId", "companyName", "status", "submittedAt", "reviewedAt", "reviewNote"}
    assert (status["status"], status["reviewedAt"], status["reviewNote"]) == ("pending", None, None)

    approve = f"/api/admin/applications/{filed['applicationId']}/approve"
    approved = admin("reviewer").post(approve, {"reviewNote": "welcome"}).get_json()
    assert set(approved) == {"applicationId", "status", "operatorId", "apiKey"}
    status = anybody.get(path, headers=token).get_json()
    assert status["status"] == "approved"
    assert status["operatorId"] == approved["operatorId"]
    assert {"step1", "step2", "step3", "step4", "step5", "sdkDocs"} == set(status["onboarding"])
    me = anybody.get("/api/operator/me", headers={"X-Service-Key": approved["apiKey"]}).get_json()
    assert (me["operatorId"], me["name"], me["address"]) == (
        approved["operatorId"],
        "Alba Games",
        FORM["ethereumAddress"],
    )
    assert [row[0] for row in rows("SELECT action FROM audit_log")] == ["application.approve"]
    assert_error(admin("root").post(approve, {}), 409, "already_reviewed")


def test_a_second_application_for_the_email_names_the_first(anybody: Caller) -> None:
    first = anybody.post("/api/public/apply", FORM).get_json()
    again = anybody.post("/api/public/apply", FORM | {"contactEmail": "OPS@alba.example"})
    assert assert_error(again, 409)["applicationId"] == first["applicationId"]


def test_a_status_without_its_token_is_nobodys(anybody: Caller) -> None:
    filed = anybody.post("/api/public/apply", FORM).get_json()
    path = f"/api/public/application-status/{filed['applicationId']}"
    assert_error(anybody.get(path), 401)
    assert_error(anybody.get(path, headers={"X-Application-Token": "wrong"}), 401)
    assert_error(anybody.get("/api/public/application-status/%00", headers={"X-Application-Token": "x"}), 401)


def test_a_rejected_application_makes_no_operator(anybody: Caller, admin: Callable[[str], Caller]) -> None:
    filed = anybody.post("/api/public/apply", FORM).get_json()
    caller = admin("reviewer")
    rejected = caller.post(f"/api/admin/applications/{filed['applicationId']}/reject", {"reviewNote": "no license"})
    assert rejected.get_json() == {
        "applicationId": filed["applicationId"],
        "status": "rejected",
        "operatorId": None,
        "apiKey": None,
    }
    listed = caller.get("/api/admin/applications?status=rejected").get_json()
    assert (listed["count"], listed["applications"][0]["reviewNote"]) == (1, "no license")
    assert rows("SELECT count(*) FROM operators") == [(0,)]


@pytest.mark.parametrize("role", ["treasurer", "oncall"])
def test_reviewing_takes_a_reviewer(admin: Callable[[str], Caller], role: str) -> None:
    assert_error(admin(role).get("/api/admin/applications"), 403, "wrong_role")
    assert_error(admin(role).post("/api/admin/applications/app_1/approve", {}), 403, "wrong_role")


def login(caller: Caller) -> dict[str, str]:
    answer = caller.post("/api/auth/operator/login", {"apiKey": caller.headers["X-Service-Key"]})
    assert answer.status_code == 200
    tokens: dict[str, str] = answer.get_json()
    return tokens


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_a_key_is_exchanged_for_tokens_that_open_the_operators_doors(
    anybody: Caller, operator: Callable[[], Caller]
) -> None:
    tokens = login(operator())
    assert set(tokens) == {"accessToken", "refreshToken", "expiresIn"}
    assert tokens["expiresIn"] == 900
    assert anybody.get("/api/operator/me", headers=bearer(tokens["accessToken"])).get_json()["operatorId"] == "op_a"


def test_a_refreshed_token_is_spent_and_using_it_again_fells_the_family(
    anybody: Caller, operator: Callable[[], Caller]
) -> None:
    first = login(operator())
    second = anybody.post("/api/auth/refresh", {"refreshToken": first["refreshToken"]}).get_json()
    assert second["refreshToken"] != first["refreshToken"]
    assert_error(anybody.post("/api/auth/refresh", {"refreshToken": first["refreshToken"]}), 401, "invalid_token")
    assert_error(anybody.post("/api/auth/refresh", {"refreshToken": second["refreshToken"]}), 401, "invalid_token")


def test_a_logged_out_token_refreshes_nothing(anybody: Caller, operator: Callable[[], Caller]) -> None:
    tokens = login(operator())
    assert anybody.post("/api/auth/logout", {"refreshToken": tokens["refreshToken"]}).get_json() == {"success": True}
    assert_error(anybody.post("/api/auth/refresh", {"refreshToken": tokens["refreshToken"]}), 401)


def test_forged_and_expired_access_tokens_open_nothing(anybody: Caller, operator: Callable[[], Caller]) -> None:
    caller = operator()
    good = login(caller)["accessToken"]
    claims = jwt.decode(good, options={"verify_signature": False})
    kid, secret = settings().jwt_keys[0]
    old = datetime.now(UTC) - timedelta(seconds=901)
    forged = [
        jwt.encode(claims, "another secret of sufficient length", algorithm="HS256", headers={"kid": kid}),
        jwt.encode(claims, secret, algorithm="HS256", headers={"kid": "unknown"}),
        jwt.encode(claims, secret, algorithm="HS512", headers={"kid": kid}),
        jwt.encode(claims, None, algorithm="none", headers={"kid": kid}),
        jwt.encode(claims | {"aud": "others"}, secret, algorithm="HS256", headers={"kid": kid}),
        jwt.encode({k: v for k, v in claims.items() if k != "exp"}, secret, algorithm="HS256", headers={"kid": kid}),
        issue_access_token(caller.id, claims["key"], old),
        issue_access_token("op_nobody", claims["key"], datetime.now(UTC)),
        good[:-2],
        "",
        "é",
    ]
    for token in forged:
        assert_error(anybody.get("/api/operator/me", headers=bearer(token)), 401)


def test_a_suspended_operator_is_forbidden_even_with_a_live_token(
    anybody: Caller, operator: Callable[[], Caller]
) -> None:
    caller = operator()
    tokens = login(caller)
    with transaction() as session:
        session.execute(text("UPDATE operators SET active = false"))
    assert_error(caller.get("/api/operator/me"), 403, "suspended")
    assert_error(anybody.get("/api/operator/me", headers=bearer(tokens["accessToken"])), 403, "suspended")
    assert_error(anybody.post("/api/auth/refresh", {"refreshToken": tokens["refreshToken"]}), 403)
    assert_error(anybody.post("/api/auth/operator/login", {"apiKey": caller.headers["X-Service-Key"]}), 403)


def test_no_secret_reaches_the_logs(
    anybody: Caller, operator: Callable[[], Caller], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    caller = operator()
    tokens = login(caller)
    caller.get("/api/operator/me")
    anybody.post("/api/auth/refresh", {"refreshToken": tokens["refreshToken"]})
    for secret in (caller.headers["X-Service-Key"], tokens["accessToken"], tokens["refreshToken"]):
        assert secret not in caplog.text
