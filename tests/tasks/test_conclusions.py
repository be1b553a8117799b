"""What is written down of attempts: counted with what is on record, told in the log with the delivery's id."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from models.deliveries import DeliveryStatus, announce
from models.leases import Concluded, Lane, Leased, lease_some
from models.session import transaction
from models.tallies import Kind, tallies
from tasks.attempts import PutOff
from tasks.conclusions import write_down
from tests.factories import rows, some_operators

pytestmark = pytest.mark.usefixtures("house", "redis_url")


def leased(count: int, seconds: float = 45.0) -> list[Leased]:
    """So many deliveries, to an operator each, taken for an attempt."""
    with transaction() as session:
        announce(session, "round.sealing", some_operators(count), None, {})
    with transaction() as session:
        taken = lease_some(session, Lane.FAST, count, seconds)
    assert len(taken) == count
    return taken


def concluded(what: Leased, error_class: str | None = None, **changes: Any) -> Concluded:
    """Its attempt, answered in 40 ms over a new connection, or failed for the last time."""
    known: dict[str, Any] = {
        "status": DeliveryStatus.FAILED if error_class else DeliveryStatus.DELIVERED,
        "retry_in_seconds": None,
        "duration_ms": 40,
        "url": "https://example.com/",
        "status_code": None if error_class else 200,
        "response_body": None,
        "phases_ms": None,
        "peer": "192.0.2.1",
        "reused": False,
        "detail": None,
    }
    return Concluded(leased=what, error_class=error_class, **(known | changes))


def counted() -> dict[str, dict[str, int]]:
    with transaction() as session:
        return {kind.value: counts for kind, counts in tallies(session).items() if counts}


def told(caplog: pytest.LogCaptureFixture) -> dict[str, dict[str, Any]]:
    """What the log says of each delivery."""
    return {record.delivery: vars(record) | {"said": record.getMessage()} for record in caplog.records}  # type: ignore[attr-defined]


def test_an_attempt_is_counted_by_what_came_of_it() -> None:
    well, again, over, ours = leased(4)
    results = [
        concluded(well),
        concluded(again, "status_5xx", status=DeliveryStatus.PENDING, retry_in_seconds=30.0, reused=True),
        concluded(over, "connect", peer=None),
        PutOff(ours, 5.0, "our resolver does not answer"),
    ]
    assert write_down(results) == 3
    found = counted()
    assert found[Kind.OUTCOME] == {"delivered": 1, "status_5xx": 1, "connect": 1, "ours": 1}
    assert found[Kind.GIVEN_UP] == {"connect": 1}
    assert found[Kind.CONNECTION] == {"new": 1, "reused": 1}
    assert found[Kind.SECONDS] == {"0.05": 2}
    assert found[Kind.SECONDS_SUM] == {"": 80_000}
    assert sum(found[Kind.WAIT].values()) == 3


def test_a_result_that_comes_too_late_is_told_and_not_counted(caplog: pytest.LogCaptureFixture) -> None:
    [late] = leased(1, seconds=0.0)
    with transaction() as session:
        [now] = lease_some(session, Lane.FAST, 1, 45.0)
    caplog.set_level(logging.INFO, "tasks.conclusions")
    assert write_down([concluded(late)]) == 0
    assert counted() == {}
    assert rows("SELECT status FROM deliveries") == [("pending",)]
    assert "too late" in told(caplog)[str(now.id)]["said"]


def test_every_attempt_is_told_with_the_id_of_its_delivery(caplog: pytest.LogCaptureFixture) -> None:
    well, badly, ours = leased(3)
    caplog.set_level(logging.INFO, "tasks.conclusions")
    write_down(
        [
            concluded(well),
            concluded(badly, "timeout", detail="no answer in time"),
            PutOff(ours, 5.0, "our resolver does not answer"),
        ]
    )
    lines = told(caplog)
    assert list(lines) == [str(each.id) for each in (well, badly, ours)]
    for each, line in zip((well, badly, ours), lines.values(), strict=True):
        assert (line["operator"], line["webhook"], line["attempt"]) == (each.operator_id, "round.sealing", 1)
    first, second, third = lines.values()
    assert (first["said"], first["ms"], first["peer"]) == ("webhook delivered", 40, "192.0.2.1")
    assert (second["why"], second["detail"], second["given_up"]) == ("timeout", "no answer in time", True)
    assert (third["why"], third["again_in_seconds"]) == ("our resolver does not answer", 5.0)
