"""What running processes write to their logs: one JSON object a line, webhooks by their delivery ids, and no secret."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from deploy.coordinator import Coordinator, coordinator
from deploy.data_folder import throw_away
from tests.chaos.playing import Lottery, furnish, open_round
from tests.polling import until
from tests.receiver import receiving

TOKEN = "a-token-that-nobody-else-knows"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Coordinator]:
    clean = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    clean |= {"LOG_LEVEL": "DEBUG", "WORKER_PROCESSES": "1"}
    with throw_away() as folder, coordinator(folder, log_dir=tmp_path, environ=clean) as started:
        yield started


def test_every_attempt_is_in_the_log_with_its_delivery_and_without_a_secret(
    running: Coordinator, tmp_path: Path
) -> None:
    lottery = furnish(running)
    first, second, third = lottery.operators
    with receiving() as well, receiving() as badly, nobody_there() as gone:
        badly.answers = [(500, {"X-Echo": lottery.operators[second]})] * 100
        for operator_id, url in ((first, well.url), (second, badly.url), (third, gone)):
            register(lottery, operator_id, f"{url}?token={TOKEN}")
        open_round(lottery, (3_600, 1, 1, 1, 1, 1))
        until(lambda: not lottery.rows("SELECT FROM deliveries WHERE finished_at IS NULL"), within=30)
        sent = [headers for headers, _ in (*well.requests, *badly.requests)]
    # A line is written after the commit of what it tells.
    log = tmp_path / "worker.log"
    until(lambda: len(attempts_in(log)) == attempts(lottery), what="every attempt in the log")
    told = attempts_in(log)

    rows = lottery.rows(
        "SELECT delivery_id::text, number, operator_id, event, a.error_class FROM delivery_attempts a"
        " JOIN deliveries d ON d.id = a.delivery_id"
    )
    assert {(*key, line["operator"], line["webhook"], line.get("why")) for key, line in told.items()} == set(rows)
    assert {line.get("why") for line in told.values()} == {None, "status_5xx", "connect"}
    assert all(
        line["peer"].startswith("127.0.0.1") and line["ms"] >= 0
        for line in told.values()
        if line.get("why") != "connect"
    )

    secrets = [TOKEN, lottery.admin, *lottery.operators.values()]
    secrets += [key.rpartition("_")[2] for key in (lottery.admin, *lottery.operators.values())]
    secrets += [running.env[name] for name in ("ENCRYPTION_KEYS", "JWT_KEYS")]
    signatures = [value for headers in sent for name, value in headers.items() if name.lower().endswith("-signature")]
    assert len(signatures) == 2 * len(sent)
    secrets += signatures
    written = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.glob("*.log")}
    assert {"web.log", "worker.log", "scheduler.log"} <= set(written)
    assert [(name, secret) for name, text in written.items() for secret in secrets if secret in text] == []


def register(lottery: Lottery, operator_id: str, url: str) -> None:
    with lottery.connect() as connection, connection.cursor() as cursor:
        cursor.execute("UPDATE operators SET webhook_url = %s WHERE id = %s", (url, operator_id))
    connection.close()


def attempts(lottery: Lottery) -> int:
    return int(lottery.rows("SELECT count(*) FROM delivery_attempts")[0][0])


def attempts_in(log: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """Every attempt that a log tells of, by delivery and number. Every line of it is a JSON object."""
    lines = [
        json.loads(line) for line in log.read_text(encoding="utf-8").splitlines(keepends=True) if line.endswith("\n")
    ]
    told = [line for line in lines if line["event"] in ("webhook delivered", "webhook attempt failed")]
    found = {(line["delivery"], line["attempt"]): line for line in told}
    assert len(found) == len(told)
    return found


@contextmanager
def nobody_there() -> Iterator[str]:
    """An address at which nobody listens, and nobody will meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}/hook"
