"""Applications and deposits: each once, however often and however simultaneously they come."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import event

from models.applications import application_for_token, apply, review
from models.deposits import deposit
from models.session import engine, transaction
from protocol.errors import Conflict, NotFound, Unauthenticated
from tests.factories import an_operator, balances, rows

pytestmark = pytest.mark.usefixtures("house")


def an_application(email: str = "a@example.com") -> tuple[str, str]:
    with transaction() as session:
        return apply(
            session,
            company_name="A",
            jurisdiction="Malta",
            gaming_license_number="1",
            contact_email=email,
            contact_name="B",
            ethereum_address="0x" + "0" * 40,
        )


def test_a_second_pending_application_for_an_email_is_refused_whatever_its_case() -> None:
    first, _ = an_application("Some.One@example.com")
    with pytest.raises(Conflict) as conflict:
        an_application("some.one@EXAMPLE.com")
    assert conflict.value.facts == {"applicationId": first}


def test_a_decided_application_makes_room_for_another() -> None:
    first, _ = an_application()
    with transaction() as session:
        review(session, first, approve=False, note="no")
    assert an_application()[0] != first


def test_an_application_decided_while_the_next_is_filed_makes_room_for_it() -> None:
    first, _ = an_application()
    decided: list[str] = []

    def decide(connection: object, cursor: object, statement: str, *_: object) -> None:
        # At the worst moment: the second one has just met the first.
        if statement.startswith("INSERT INTO applications") and not decided:
            decided.append(first)
            with transaction() as session:
                review(session, first, approve=False, note=None)

    event.listen(engine(), "after_cursor_execute", decide)
    second, _ = an_application()
    assert decided == [first]
    assert rows("SELECT id FROM applications WHERE status = 'pending'") == [(second,)]


def test_of_simultaneous_applications_with_one_email_one_is_filed() -> None:
    def attempt(_: int) -> bool:
        try:
            an_application()
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(10) as pool:
        assert sum(pool.map(attempt, range(40))) == 1
    assert rows("SELECT count(*) FROM applications") == [(1,)]


def test_an_application_is_decided_once() -> None:
    application_id, _ = an_application()
    with transaction() as session:
        assert review(session, application_id, approve=True, note=None).operator_id is not None
    with transaction() as session, pytest.raises(Conflict, match="approved already"):
        review(session, application_id, approve=False, note=None)
    with transaction() as session, pytest.raises(NotFound):
        review(session, "app_0", approve=True, note=None)


def test_a_status_is_read_with_its_own_token_only() -> None:
    first, token = an_application("a@example.com")
    _, other = an_application("b@example.com")
    with transaction() as session:
        assert application_for_token(session, first, token).company_name == "A"
        for wrong in (other, "", token[:-1]):
            with pytest.raises(Unauthenticated):
                application_for_token(session, first, wrong)
        with pytest.raises(Unauthenticated):
            application_for_token(session, "app_nobody", token)


def test_a_deposit_is_recorded_once_by_its_reference() -> None:
    an_operator("a", funds=0)
    with transaction() as session:
        assert deposit(session, "op_a", 500, "wire 1").new
    with transaction() as session:
        again = deposit(session, "op_a", 500, "wire 1")
    assert (again.new, again.balance) == (False, 500)
    with transaction() as session, pytest.raises(Conflict):
        deposit(session, "op_a", 501, "wire 1")
    assert balances() == {"external": -500, "operator:op_a": 500}


def test_simultaneous_deposits_are_all_there_and_each_once() -> None:
    an_operator("a", funds=0)

    def attempt(place: int) -> None:
        with transaction() as session:
            deposit(session, "op_a", 1, f"wire {place % 10}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(attempt, range(80)))
    assert balances()["operator:op_a"] == 10
