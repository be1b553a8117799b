"""Leases: who gets which delivery, how many at once, and what a result is worth that comes too late."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

from models.deliveries import DeliveryStatus, announce
from models.endpoints import BREAKER_FAILURES, Health, forget_failures, note_health, pause_endpoint, resume_endpoint
from models.leases import (
    SLOW_CAP,
    Concluded,
    Lane,
    Leased,
    anything_to_lease,
    conclude_some,
    lease_some,
    release_some,
)
from models.queues import pause, unpause
from models.session import transaction
from models.settings import settings
from tests.factories import an_operator, rows

pytestmark = pytest.mark.usefixtures("house")


def announced(count: int = 1, *operator_ids: str) -> None:
    with transaction() as session:
        for _ in range(count):
            announce(session, "round.sealed", operator_ids or ["op_a"], None, {"sealedCount": 3})


def leased(lane: Lane = Lane.FAST, most: int = 100, seconds: float = 60) -> list[Leased]:
    with transaction() as session:
        return lease_some(session, lane, most, seconds)


def concluded(
    lease: Leased,
    status: DeliveryStatus = DeliveryStatus.DELIVERED,
    error_class: str | None = None,
    retry_in_seconds: float | None = None,
) -> bool:
    result = Concluded(lease, status, retry_in_seconds, 1, "", None, error_class, None, None, None, False, None)
    with transaction() as session:
        return conclude_some(session, [result]) == {lease.id}


def failures(count: int, *operator_ids: str) -> None:
    with transaction() as session:
        note_health(session, dict.fromkeys(operator_ids or ["op_a"], Health(recovered=False, failures=count)))


def an_hour_passes() -> None:
    """Everything that lies ahead comes an hour nearer."""
    with transaction() as session:
        session.execute(
            text("""UPDATE deliveries SET due_at = due_at - interval '1 hour',
                    lease_ends_at = lease_ends_at - interval '1 hour'""")
        )
        session.execute(text("UPDATE webhook_endpoints SET open_until = open_until - interval '1 hour'"))


def test_what_is_leased_is_nobody_elses_until_the_lease_is_over() -> None:
    an_operator("a")
    announced()
    [first] = leased()
    assert leased() == leased(Lane.SLOW) == []
    an_hour_passes()
    [second] = leased()
    assert (second.id, second.fence) == (first.id, first.fence + 1)


def test_a_result_that_comes_after_the_lease_changes_nothing() -> None:
    an_operator("a")
    announced()
    [late] = leased()
    an_hour_passes()
    [held] = leased()
    assert not concluded(late, DeliveryStatus.FAILED, "timeout")
    with transaction() as session:
        assert release_some(session, [late], 0) == 0
    assert rows("SELECT status, attempts, error_class FROM deliveries") == [("pending", 0, None)]
    assert rows("SELECT count(*) FROM delivery_attempts") == [(0,)]
    assert concluded(held)
    assert not concluded(held)
    assert rows("SELECT status, attempts FROM deliveries") == [("delivered", 1)]


def test_what_is_given_back_has_lost_no_attempt() -> None:
    an_operator("a")
    announced()
    [lease] = leased()
    with transaction() as session:
        assert release_some(session, [lease], 0) == 1
    [again] = leased()
    assert again.number == lease.number == 1


def test_an_endpoint_has_so_many_at_once_and_no_more() -> None:
    an_operator("a")
    an_operator("b")
    announced(10)
    announced(1, "op_b")
    first = leased()
    cap = settings().webhook_endpoint_concurrency
    assert [lease.operator_id for lease in first] == ["op_a"] * cap + ["op_b"]
    assert leased() == []
    assert concluded(first[0])
    assert len(leased()) == 1


def test_many_who_lease_at_once_never_exceed_what_an_endpoint_may_have() -> None:
    operators = [an_operator(f"{number}") for number in range(5)]
    announced(20, *operators)
    with ThreadPoolExecutor(8) as pool:
        taken = [lease for batch in pool.map(lambda _: leased(most=7), range(24)) for lease in batch]
    taken += leased()  # who looked while all was held by others got nothing
    assert len({lease.id for lease in taken}) == len(taken)
    cap = settings().webhook_endpoint_concurrency
    counted = rows("SELECT count(*) FROM deliveries WHERE lease_ends_at IS NOT NULL GROUP BY operator_id")
    assert max(count for (count,) in counted) <= cap
    assert len(taken) == cap * len(operators)


def test_first_attempts_and_retries_go_in_lanes_of_their_own() -> None:
    an_operator("a")
    announced()
    [lease] = leased()
    assert concluded(lease, DeliveryStatus.PENDING, "timeout", retry_in_seconds=0)
    announced()
    assert [each.number for each in leased(Lane.SLOW)] == [2]
    assert [each.number for each in leased(Lane.FAST)] == [1]


def test_an_endpoint_that_failed_lately_is_slow_in_everything_and_fast_again_when_it_recovers() -> None:
    an_operator("a")
    announced(5)
    failures(1)
    assert leased(Lane.FAST) == []
    slow = leased(Lane.SLOW)
    assert len(slow) == SLOW_CAP
    with transaction() as session:
        note_health(session, {"op_a": Health(recovered=True, failures=0)})
    assert len(leased(Lane.FAST)) == settings().webhook_endpoint_concurrency - SLOW_CAP


def test_what_was_queued_again_by_hand_goes_behind_the_news() -> None:
    an_operator("a")
    announced(3)
    with transaction() as session:
        session.execute(text("UPDATE deliveries SET priority = 2, due_at = due_at - interval '1 hour'"))
    assert len(leased(Lane.SLOW)) == SLOW_CAP
    announced()
    [news] = leased(Lane.FAST)
    assert news.priority == 0


def test_five_failures_in_a_row_open_the_breaker_and_nothing_that_waits_is_touched() -> None:
    an_operator("a")
    announced(3)
    waiting = rows("SELECT * FROM deliveries ORDER BY id")
    failures(BREAKER_FAILURES - 1)
    failures(1)
    assert leased(Lane.FAST) == leased(Lane.SLOW) == []
    with transaction() as session:
        assert not anything_to_lease(session)
    assert rows("SELECT * FROM deliveries ORDER BY id") == waiting


def test_a_success_in_between_closes_the_count() -> None:
    an_operator("a")
    failures(BREAKER_FAILURES - 1)
    with transaction() as session:
        note_health(session, {"op_a": Health(recovered=True, failures=1)})
    assert rows("SELECT failures, open_until FROM webhook_endpoints") == [(1, None)]


def test_after_its_time_one_probe_goes_through_and_decides() -> None:
    an_operator("a")
    announced(4)
    failures(BREAKER_FAILURES)
    an_hour_passes()
    [probe] = leased(Lane.SLOW)
    assert leased(Lane.SLOW) == []
    assert concluded(probe, DeliveryStatus.PENDING, "timeout", retry_in_seconds=600)
    failures(1)
    assert leased(Lane.SLOW) == []
    an_hour_passes()
    [probe] = leased(Lane.SLOW)
    assert concluded(probe)
    with transaction() as session:
        note_health(session, {"op_a": Health(recovered=True, failures=0)})
    assert len(leased(Lane.FAST)) == 2


def test_only_one_of_many_gets_the_probe() -> None:
    an_operator("a")
    announced(8)
    failures(BREAKER_FAILURES)
    an_hour_passes()
    with ThreadPoolExecutor(8) as pool:
        taken = [lease for batch in pool.map(lambda _: leased(Lane.SLOW), range(16)) for lease in batch]
    assert len(taken) == 1


def test_who_changed_something_is_called_at_once() -> None:
    an_operator("a")
    announced()
    failures(BREAKER_FAILURES)
    with transaction() as session:
        forget_failures(session, "op_a")
    assert len(leased()) == 1


def test_a_paused_endpoint_gets_nothing_and_the_others_everything() -> None:
    an_operator("a")
    an_operator("b")
    announced(1, "op_a", "op_b")
    with transaction() as session:
        assert pause_endpoint(session, "op_a", "anna", "they asked us to")
        assert not pause_endpoint(session, "op_a", "bert", "again")
    assert [lease.operator_id for lease in leased()] == ["op_b"]
    with transaction() as session:
        assert resume_endpoint(session, "op_a")
        assert not resume_endpoint(session, "op_a")
    assert [lease.operator_id for lease in leased()] == ["op_a"]


def test_a_paused_queue_gives_nothing_away() -> None:
    an_operator("a")
    announced()
    with transaction() as session:
        pause(session, "deliveries", "anna", "maintenance")
    assert leased() == []
    with transaction() as session:
        unpause(session, "deliveries")
    assert len(leased()) == 1


def test_the_longest_waiting_go_first_and_no_more_than_wanted() -> None:
    for name in "abc":
        an_operator(name)
    announced(1, "op_c")
    announced(2, "op_a")
    announced(1, "op_b")
    assert [lease.operator_id for lease in leased(most=2)] == ["op_c", "op_a"]


def test_every_new_operator_has_an_endpoint() -> None:
    an_operator("a")
    assert rows("SELECT operator_id, failures, paused_at FROM webhook_endpoints") == [("op_a", 0, None)]
