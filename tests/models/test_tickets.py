"""Tickets on record: whole batches, once, in the order of bytes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from models.session import transaction
from models.tickets import Ticket, add_tickets, stream_tickets
from protocol.errors import Conflict
from tests.factories import a_round, move_clock_to, some_operators, some_tickets, submit

pytestmark = pytest.mark.usefixtures("house")


def recorded(round_id: int, operator_id: str = "op_a") -> list[Ticket]:
    with transaction() as session:
        return list(stream_tickets(session, round_id, operator_id))


def add(round_id: int, batch: list[Ticket], operator_id: str = "op_a") -> int:
    with transaction() as session:
        return add_tickets(session, round_id, operator_id, batch)


def test_a_resent_batch_is_accepted_once() -> None:
    round_id = a_round(some_operators(1))
    batch = some_tickets(50)
    assert add(round_id, batch) == 50
    assert add(round_id, batch) == 0
    assert sorted(recorded(round_id)) == sorted(batch)


def test_of_a_batch_that_is_partly_known_the_rest_is_added() -> None:
    round_id = a_round(some_operators(1))
    batch = some_tickets(50)
    add(round_id, batch[:20])
    assert add(round_id, batch[10:]) == 30
    assert sorted(recorded(round_id)) == sorted(batch)


def test_a_large_batch_that_is_partly_known_is_compared_to_its_last_ticket() -> None:
    round_id = a_round(some_operators(1))
    batch = some_tickets(12_001)
    add(round_id, batch[3_000:11_000] + batch[-1:])
    changed = [(ticket[0], 1, *ticket[2:]) for ticket in (batch[4_999], batch[5_000], batch[-1])]
    with pytest.raises(Conflict) as conflict:
        add(round_id, [ticket for ticket in batch if ticket[0] not in {one[0] for one in changed}] + changed)
    assert conflict.value.details == {"ticketIds": ["t-4999", "t-5000", "t-12000"], "count": 3}
    assert add(round_id, batch) == 4_000
    assert sorted(recorded(round_id)) == sorted(batch)


def test_a_changed_ticket_is_named_and_nothing_of_its_batch_is_stored() -> None:
    round_id = a_round(some_operators(1))
    batch = some_tickets(50)
    add(round_id, batch[:20])
    changed = (batch[7][0], 1, 1, 1, 1, 1, 1, True)
    with pytest.raises(Conflict) as conflict:
        add(round_id, [*batch[20:], changed])
    assert conflict.value.details == {"ticketIds": ["t-7"], "count": 1}
    assert len(recorded(round_id)) == 20


def test_a_batch_that_comes_to_the_guard_after_seal_at_is_a_conflict_as_any_late_one() -> None:
    round_id = a_round(some_operators(1))
    batch = some_tickets(50)
    add(round_id, batch[:20])
    move_clock_to(round_id, "seal_at")
    for late in (batch[20:], batch):
        with pytest.raises(Conflict) as conflict:
            add(round_id, late)
        assert conflict.value.code == "sales_ended"
    assert len(recorded(round_id)) == 20


def test_a_ticket_that_differs_only_in_its_quick_pick_is_another_ticket() -> None:
    round_id = a_round(some_operators(1))
    ticket = some_tickets(1)[0]
    add(round_id, [ticket])
    with pytest.raises(Conflict):
        add(round_id, [(*ticket[:7], not ticket[7])])


def test_two_operators_may_use_the_same_ids() -> None:
    round_id = a_round(some_operators(2))
    for operator_id in ("op_a", "op_b"):
        submit(round_id, operator_id, some_tickets(5))
    assert [len(recorded(round_id, one)) for one in ("op_a", "op_b")] == [5, 5]


def test_tickets_come_in_the_order_of_their_ids_bytes() -> None:
    round_id = a_round(some_operators(1))
    ids = ["b", "a", "B", "_", "t-10", "t-9", "Z.z", "0", ":"]
    add(round_id, [(name, 1, 1, 1, 1, 1, 1, True) for name in ids])
    assert [ticket[0] for ticket in recorded(round_id)] == sorted(ids, key=str.encode)


def test_the_same_batch_from_many_threads_is_stored_once() -> None:
    round_id = a_round(some_operators(1))
    batch = some_tickets(200)

    def attempt(_: int) -> None:
        from models.participation import participation
        from models.rounds import hold_round

        with transaction() as session:
            hold_round(session, round_id)
            part = participation(session, round_id, "op_a")
            part.ticket_count += add_tickets(session, round_id, "op_a", batch)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(attempt, range(16)))
    assert len(recorded(round_id)) == 200
