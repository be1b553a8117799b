"""Rate limits: who is counted, and as whom."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import event
from sqlalchemy.pool import Pool

from app import limits
from tests.app.conftest import Caller, assert_error
from tests.app.limited import OWN, PUBLIC, Make, ask, counts, left, new_key


@pytest.fixture
def key(house: None) -> str:
    """The API key of an operator."""
    return new_key("a")


def test_two_addresses_have_a_budget_each(app_with: Make) -> None:
    client = app_with()
    ask(client)
    assert left(ask(client, address="192.0.2.2")) == (3, 2)


def test_the_paths_share_one_budget(app_with: Make) -> None:
    client = app_with()
    ask(client, "/nothing")
    ask(client, "/api/public/rounds")
    assert left(ask(client)) == (3, 0)


def test_a_key_is_counted_wherever_it_is_used_from(app_with: Make, key: str) -> None:
    client = app_with()
    assert left(ask(client, OWN, address="192.0.2.1", X_Service_Key=key)) == (5, 4)
    assert left(ask(client, OWN, address="192.0.2.2", X_Service_Key=key)) == (5, 3)
    assert left(ask(client, OWN, X_Service_Key=new_key("b"))) == (5, 4)


def test_an_access_token_is_counted_as_the_key_it_stands_for(app_with: Make, key: str) -> None:
    client = app_with()
    pair = client.post("/api/auth/operator/login", json={"apiKey": key})
    assert left(pair) == (3, 2), "a login is counted by address: its key is in the body"
    token = pair.get_json()["accessToken"]
    ask(client, OWN, X_Service_Key=key)
    assert left(ask(client, OWN, Authorization=f"Bearer {token}")) == (5, 3)


def test_an_admin_key_has_a_budget_of_its_own(app_with: Make, admin: Callable[[str], Caller]) -> None:
    headers = admin("reviewer").headers
    client = app_with()
    assert left(client.get("/api/admin/applications", headers=headers)) == (5, 4)
    assert left(client.post("/api/admin/rounds", json={}, headers=headers)) == (5, 3), "403 is counted, too"


def test_a_suspended_operator_is_counted_as_its_key(app_with: Make, key: str) -> None:
    from models.operators import Operator
    from models.session import transaction

    client = app_with()
    with transaction() as session:
        session.get_one(Operator, "op_a").active = False
    answer = ask(client, OWN, X_Service_Key=key)
    assert_error(answer, 403, "suspended")
    assert left(answer) == (5, 4)


def test_a_key_that_is_used_up_leaves_the_address_alone(app_with: Make, key: str) -> None:
    client = app_with()
    answers = [ask(client, OWN, X_Service_Key=key).status_code for _ in range(6)]
    assert answers == [200] * 5 + [429]
    assert left(ask(client)) == (3, 2)


def test_an_address_that_is_used_up_leaves_its_operators_alone(app_with: Make, key: str) -> None:
    client = app_with()
    assert [ask(client, OWN, X_Service_Key="sk_wrong").status_code for _ in range(4)] == [401] * 3 + [429]
    assert left(ask(client, OWN, X_Service_Key=key)) == (5, 4)


def test_wrong_credentials_look_the_same_whether_the_key_exists_or_not(app_with: Make, key: str) -> None:
    client = app_with()
    same_id = f"{key[:-1]}{'0' if key[-1] != '0' else '1'}"
    wrong = [same_id, f"sk_{'0' * 16}_{'0' * 64}", "nonsense"]
    answers = [ask(client, OWN, address=f"192.0.2.{place}", X_Service_Key=text) for place, text in enumerate(wrong)]
    assert {(left(answer), answer.text, *sorted(answer.headers.keys())) for answer in answers} == {
        ((3, 2), answers[0].text, *sorted(answers[0].headers.keys()))
    }


@pytest.fixture
def connections() -> Iterator[list[object]]:
    """Every use of a connection to the database, by whichever engine."""
    used: list[object] = []

    def note(*connection: object) -> None:
        used.append(connection)

    event.listen(Pool, "checkout", note)
    yield used
    event.remove(Pool, "checkout", note)


def test_a_flood_without_credentials_never_reaches_the_database(app_with: Make, connections: list[object]) -> None:
    client = app_with()
    for _ in range(3):
        ask(client)
    assert connections
    connections.clear()
    assert {ask(client, path).status_code for path in (PUBLIC, OWN, "/api/public/rounds", "/nothing")} == {429}
    assert ask(client, OWN, X_Service_Key="made up").status_code == 429
    assert ask(client, OWN, Authorization="Bearer made.up.entirely").status_code == 429
    assert not connections


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("192.0.2.1:50123", "192.0.2.1"),
        ("[2001:db8:1:2:3:4:5:6]:50123", "2001:db8:1:2::/64"),
        ("[192.0.2.1", "unknown"),
        ("", "unknown"),
        (None, "unknown"),
        ("anything, really", "unknown"),
    ],
)
def test_an_address_is_counted_by_what_one_customer_has(address: str | None, network: str) -> None:
    assert limits.client_network(address) == network


@pytest.mark.parametrize(
    ("hops", "forwarded", "counted"),
    [
        ("0", "198.51.100.1", "192.0.2.1"),
        ("1", "198.51.100.1", "198.51.100.1"),
        ("1", "203.0.113.66, 198.51.100.1", "198.51.100.1"),
        ("2", "203.0.113.66, 198.51.100.1, 10.0.0.1", "198.51.100.1"),
        ("2", "198.51.100.1", "192.0.2.1"),  # it came past one of the two: nothing in it can be believed
    ],
)
def test_only_what_trusted_hops_wrote_says_who_is_counted(
    app_with: Make, redis_url: str, hops: str, forwarded: str, counted: str
) -> None:
    ask(app_with(TRUSTED_HOPS=hops), X_Forwarded_For=forwarded)
    assert counts(redis_url) == [f"ip:{counted}"]


def test_a_spoofed_address_gains_nothing(app_with: Make) -> None:
    client = app_with()
    answers = [ask(client, X_Forwarded_For=f"198.51.100.{n}", X_Real_Ip=f"198.51.100.{n}") for n in range(4)]
    assert [answer.status_code for answer in answers] == [200] * 3 + [429]
