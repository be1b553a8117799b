"""A queue paused over kill -9 and an emptied Redis: nothing goes out meanwhile, and everything once afterwards."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from deploy.coordinator import Coordinator, coordinator
from deploy.data_folder import throw_away
from tests.chaos.counting import counting
from tests.chaos.playing import Lottery, furnish, open_round
from tests.chaos.test_faults import kill
from tests.polling import until

ROUNDS = 4


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Coordinator]:
    clean = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    with throw_away() as folder, coordinator(folder, log_dir=tmp_path, environ=clean) as started:
        yield started


@pytest.fixture
def received() -> Iterator[tuple[str, Counter[str]]]:
    """The URL of a receiver, and how often each delivery reached it."""
    with counting() as found:
        yield found


def pending(lottery: Lottery) -> int:
    return int(lottery.rows("SELECT count(*) FROM deliveries WHERE status = 'pending'")[0][0])


@pytest.mark.chaos
def test_a_pause_outlives_its_workers_and_loses_and_doubles_nothing(
    running: Coordinator, received: tuple[str, Counter[str]]
) -> None:
    lottery, (url, counted) = furnish(running), received
    for operator_id in lottery.operators:
        with lottery.connect() as connection, connection.cursor() as cursor:
            cursor.execute("UPDATE operators SET webhook_url = %s WHERE id = %s", (url, operator_id))
        connection.close()
    lottery.post("/api/admin/queues/deliveries/pause", {"reason": "receiver on fire"})
    for _ in range(ROUNDS):
        open_round(lottery, (3_600, 1, 1, 1, 1, 1))
    kill(running, "worker")
    with redis.Redis.from_url(lottery.redis_url) as doorbell:
        doorbell.flushall()
    until(lambda: running.supervisor.pid("worker"), what="a worker again")
    # Work of the other queue goes on beside the pause, which also shows that the new worker works.
    failing = open_round(lottery, (3_600, 1, 1, 1, 1, 1))
    lottery.post(f"/api/admin/rounds/{failing}/fail", {"reason": "to see it done"})
    until(lambda: lottery.get(f"/api/public/rounds/{failing}")["state"] == "FAILED", within=20)
    expected = (ROUNDS + 2) * len(lottery.operators)
    queue = next(one for one in lottery.get("/api/admin/queues")["queues"] if one["name"] == "deliveries")
    assert (queue["paused"], queue["depth"], queue["inFlight"]) == (True, expected, 0)
    assert counted == {}
    assert lottery.rows("SELECT count(*) FROM delivery_attempts") == [(0,)]

    lottery.post("/api/admin/queues/deliveries/resume", {"reason": "fire is out"})
    until(lambda: pending(lottery) == 0, within=20, what="everything delivered")
    assert set(counted.values()) == {1}
    assert len(counted) == expected
    assert lottery.rows("SELECT status, attempts, count(*) FROM deliveries GROUP BY 1, 2") == [
        ("delivered", 1, expected)
    ]
