"""The sender: side by side, in time, stopped gently, and unmoved by receivers and databases that go away."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator

import psycopg2
import pytest
from psycopg2 import sql
from sqlalchemy import text
from sqlalchemy.engine import make_url

from models.credentials import issue_api_key
from models.deliveries import announce
from models.session import transaction
from models.settings import settings
from tasks import deliveries, sender
from tasks.deliveries import SenderThread
from tasks.sender import Sender, deliver_due
from tests.factories import an_operator, rows
from tests.polling import until
from tests.receiver import Receiver

pytestmark = pytest.mark.usefixtures("house")


@pytest.fixture(autouse=True)
def _patient_and_soon_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries wait as long as in earnest; stopped workers do not wait for those who never answer."""
    monkeypatch.setenv("WEBHOOK_BASE_SECONDS", "30")
    monkeypatch.setattr(deliveries, "DRAIN_SECONDS", 1.0)
    settings.cache_clear()


@pytest.fixture
def silent() -> Iterator[str]:
    """The URL of a receiver that takes every connection and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=1_000) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"


class Worker:
    """A sender in a thread, as a worker process has one."""

    def __init__(self) -> None:
        self._thread = SenderThread()
        self._thread.after_worker_boot(None, None)
        self.wake = self._thread.wake

    def stop(self) -> None:
        self._thread.before_worker_shutdown(None, None)
        self._thread.after_worker_shutdown(None, None)


@contextlib.contextmanager
def working() -> Iterator[Worker]:
    worker = Worker()
    try:
        yield worker
    finally:
        worker.stop()


def operators_at(url: str, *names: str) -> list[str]:
    ids = [an_operator(name) for name in names]
    with transaction() as session:
        for operator_id in ids:
            issue_api_key(session, operator_id)
            session.execute(text("UPDATE operators SET webhook_url = :u WHERE id = :o"), {"u": url, "o": operator_id})
    return ids


def tell(*operator_ids: str) -> None:
    with transaction() as session:
        announce(session, "round.sealed", operator_ids, None, {"sealedCount": 3})


def count(where: str) -> int:
    return int(str(rows(f"SELECT count(*) FROM deliveries WHERE {where}")[0][0]))


def test_receivers_that_hang_delay_nobody_else(receiver: Receiver, silent: str) -> None:
    hanging = operators_at(silent, *(f"h{number}" for number in range(20)))
    healthy = operators_at(receiver.url, *(f"w{number}" for number in range(20)))
    with working() as worker:
        for _ in range(3):
            tell(*hanging, *healthy)
            worker.wake()
        until(lambda: count("status = 'delivered'") == 60, within=20)
        assert count("status = 'pending' AND attempts = 0") == 60


def test_a_full_slow_lane_leaves_the_fast_one_free(
    receiver: Receiver, silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEBHOOK_CONCURRENCY", "3")  # one slow slot, two fast ones
    settings.cache_clear()
    failing = operators_at(silent, "h1", "h2", "h3")
    [healthy] = operators_at(receiver.url, "w")
    with transaction() as session:
        session.execute(text("UPDATE webhook_endpoints SET failures = 1 WHERE operator_id LIKE 'op_h%'"))
    tell(*failing)
    with working() as worker:
        until(lambda: count("lease_ends_at IS NOT NULL") == 1)
        for sent in range(1, 4):
            tell(healthy)
            worker.wake()
            until(lambda so_many=sent: count("status = 'delivered'") == so_many)  # type: ignore[misc]
        assert count("lease_ends_at IS NOT NULL") == 1


def test_first_attempts_that_hang_give_the_fast_lane_back(
    receiver: Receiver, silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEBHOOK_CONCURRENCY", "3")  # two fast slots, and far more than two that hang
    monkeypatch.setattr(sender, "PROMPT_SECONDS", 0.05)
    settings.cache_clear()
    hanging = operators_at(silent, *(f"h{number}" for number in range(9)))
    [healthy] = operators_at(receiver.url, "w")
    tell(*hanging)
    tell(healthy)
    with working():
        until(lambda: count("status = 'delivered'") == 1)
        assert count("lease_ends_at IS NOT NULL") == len(hanging)


def test_what_is_out_when_a_worker_stops_is_given_back_without_an_attempt(receiver: Receiver, silent: str) -> None:
    [hanging] = operators_at(silent, "h")
    [healthy] = operators_at(receiver.url, "w")
    with working():
        tell(hanging, healthy)
        until(lambda: count("lease_ends_at IS NOT NULL") == 2 or count("status = 'delivered'") == 1)
    assert rows("SELECT operator_id, status, attempts, lease_ends_at, due_at <= now() FROM deliveries ORDER BY 1") == [
        ("op_h", "pending", 0, None, True),
        ("op_w", "delivered", 1, None, None),
    ]
    assert rows("SELECT failures FROM webhook_endpoints WHERE operator_id = 'op_h'") == [(0,)]


def test_a_stopped_sender_leases_nothing_more(receiver: Receiver) -> None:
    operators_at(receiver.url, "a")

    async def stopped_before_it_began() -> int:
        sender = Sender()
        sender.stop(5)
        return await sender.run()

    tell("op_a")
    assert asyncio.run(stopped_before_it_began()) == 0
    assert receiver.requests == []


def test_a_database_that_goes_away_costs_no_attempt_and_no_second_call(receiver: Receiver, database: str) -> None:
    url = make_url(database).set(drivername="postgresql")
    name, admin = url.database, url.set(database="postgres")
    operators_at(receiver.url, *(f"{number}" for number in range(30)))
    gate = threading.Event()
    receiver.gate = gate
    connection = psycopg2.connect(admin.render_as_string(hide_password=False))
    connection.autocommit = True
    with contextlib.closing(connection), connection.cursor() as cursor, working() as worker:
        tell(*(f"op_{number}" for number in range(30)))
        worker.wake()
        until(lambda: len(receiver.requests) == 30)
        cursor.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(sql.Identifier(str(name))))
        cursor.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
        gate.set()
        with pytest.raises(psycopg2.OperationalError):
            psycopg2.connect(url.render_as_string(hide_password=False))
        cursor.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(sql.Identifier(str(name))))
        until(lambda: count("status = 'delivered' AND attempts = 1") == 30)
    assert len(receiver.requests) == 30


def test_what_cannot_be_written_is_left_out_and_the_others_do_not_wait_for_it(receiver: Receiver) -> None:
    operators_at(receiver.url, "a", "b", "c")
    with transaction() as session:
        # Stands for whatever PostgreSQL may refuse that we did not think of.
        session.execute(
            text("""
            CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                IF NEW.response_body IS NOT NULL
                    AND NEW.delivery_id = (SELECT id FROM deliveries WHERE operator_id = 'op_b')
                THEN RAISE check_violation; END IF;
                RETURN NEW;
            END $$""")
        )
        session.execute(
            text("CREATE TRIGGER refuse BEFORE INSERT ON delivery_attempts FOR EACH ROW EXECUTE FUNCTION refuse()")
        )
    tell("op_a", "op_b", "op_c")
    assert deliver_due() == 3
    assert count("status = 'delivered' AND attempts = 1") == 3
    found = rows("SELECT operator_id, detail FROM deliveries JOIN delivery_attempts ON id = delivery_id ORDER BY 1")
    assert found == [("op_a", None), ("op_b", "the rest could not be written down"), ("op_c", None)]


def test_a_sender_that_breaks_down_is_started_again(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    operators_at(receiver.url, "a")
    whole = Sender.run
    broken = iter([RuntimeError("made up")])

    async def breaks_once(self: Sender, *, until_idle: bool = False) -> int:
        for problem in broken:
            raise problem
        return await whole(self, until_idle=until_idle)

    monkeypatch.setattr(Sender, "run", breaks_once)
    monkeypatch.setattr(deliveries, "AGAIN_SECONDS", 0.01)
    tell("op_a")
    with working() as worker:
        until(lambda: worker.wake() or count("status = 'delivered'") == 1)  # type: ignore[func-returns-value]


def test_nothing_is_sent_twice_by_two_senders_at_once(receiver: Receiver) -> None:
    names = [f"{number}" for number in range(50)]
    ids = operators_at(receiver.url, *names)
    with working() as first, working() as second:
        for _ in range(4):
            tell(*ids)
            first.wake()
            second.wake()
        until(lambda: first.wake() or second.wake() or count("status = 'delivered'") == 200, within=30)  # type: ignore[func-returns-value]
    sent = [headers["webhook-id"] for headers, _ in receiver.requests]
    assert len(sent) == len(set(sent)) == 200
