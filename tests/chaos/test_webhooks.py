"""Workers killed with -9 while webhooks are out: every one arrives, and only what was out then arrives twice."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from deploy.coordinator import Coordinator, coordinator
from deploy.data_folder import throw_away
from tests.chaos.counting import counting
from tests.chaos.playing import Lottery, furnish
from tests.chaos.test_faults import SEEDS, kill
from tests.polling import until

DELIVERIES = 300
ANSWER_SECONDS = 0.3
LEASE_SECONDS = 1 + 15
STRIKES = 3


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Coordinator]:
    """A coordinator whose deadline, and with it its leases, are short enough to be waited for."""
    clean = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    environ = clean | {"WEBHOOK_TIMEOUT_SECONDS": "1"}
    with throw_away() as folder, coordinator(folder, log_dir=tmp_path, environ=environ) as started:
        yield started


@pytest.fixture
def received() -> Iterator[tuple[str, Counter[str]]]:
    """The URL of a receiver that takes its time, and how often each delivery reached it."""
    with counting(ANSWER_SECONDS) as found:
        yield found


def announce(lottery: Lottery, url: str) -> None:
    """News for everybody, written as the coordinator writes it: rows, and nothing in Redis."""
    with lottery.connect() as connection, connection.cursor() as cursor:
        cursor.execute("UPDATE deliveries SET due_at = NULL")
        cursor.execute("UPDATE operators SET webhook_url = %s", (url,))
        cursor.execute(
            """
            INSERT INTO deliveries (id, operator_id, event, body, due_at)
            SELECT gen_random_uuid(), operator.id, 'round.sealed', '{}', now()
            FROM unnest(%s) AS operator(id), generate_series(1, %s)
            """,
            (list(lottery.operators), DELIVERIES // len(lottery.operators)),
        )
    connection.close()


def done(lottery: Lottery) -> int:
    return int(lottery.rows("SELECT count(*) FROM deliveries WHERE event = 'round.sealed' AND due_at IS NULL")[0][0])


@pytest.mark.chaos
@pytest.mark.parametrize("seed", SEEDS)
def test_no_webhook_is_lost_however_often_workers_die(
    running: Coordinator, received: tuple[str, Counter[str]], seed: int
) -> None:
    print(f"seed {seed}")
    lottery, (url, counted), chance = furnish(running), received, random.Random(seed)
    announce(lottery, url)
    out = 0
    for _ in range(STRIKES):
        wanted = done(lottery) + chance.randint(10, DELIVERIES // (STRIKES + 2))
        until(lambda so_many=wanted: done(lottery) >= so_many, within=LEASE_SECONDS + 20, what="some to arrive")  # type: ignore[misc]
        kill(running, "worker")
        with redis.Redis.from_url(lottery.redis_url) as doorbell:
            doorbell.flushall()
        out += int(lottery.rows("SELECT count(*) FROM deliveries WHERE lease_ends_at > now()")[0][0])
    until(lambda: done(lottery) == DELIVERIES, within=LEASE_SECONDS + 40, what="all to arrive")
    assert lottery.rows("SELECT DISTINCT status FROM deliveries WHERE event = 'round.sealed'") == [("delivered",)]
    assert lottery.rows("SELECT count(*), count(DISTINCT delivery_id) FROM delivery_attempts") == [
        (DELIVERIES, DELIVERIES)
    ]
    assert len(counted) == DELIVERIES
    assert sum(counted.values()) - DELIVERIES <= out
