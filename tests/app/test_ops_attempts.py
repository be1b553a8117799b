"""``flask ops deliveries show``: what came of a delivery, at one glance."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import select

from models.deliveries import DeliveryAttempt
from models.session import transaction
from tests.app.ops import Shell
from tests.app.test_admin_deliveries import deliveries
from tests.factories import an_operator


def test_a_timeline_says_when_how_long_why_and_where(shell: Shell) -> None:
    [delivery] = deliveries(1, an_operator("a"))
    with transaction() as session:
        first, second, third = session.scalars(select(DeliveryAttempt).order_by(DeliveryAttempt.number))
        began = datetime(2026, 1, 30, 22, 0, tzinfo=UTC)
        for attempt, after in ((first, 0), (second, 61), (third, 214)):
            attempt.started_at = began + timedelta(seconds=after)
        first.duration_ms, first.detail, first.peer = 30_000, "no answer in time", "203.0.113.7"
        first.phases_ms = {"dns": 11.304, "connect": 21.77, "tls": 44.021, "send": 0.212, "wait": 29_922.693}
        second.error_class, second.status_code, second.response_body = "status_4xx", 410, "gone\x1b[31m"
        second.phases_ms, second.reused, second.peer = {"send": 0.2, "wait": 86.3, "receive": 0.1}, True, "203.0.113.7"
        third.error_class, third.url = "refused_address", "https://hooks.new.example/"
        third.detail = "10.0.0.7 is not a public address"
    shown = [" ".join(line.split()) for line in shell.run("deliveries", "show", delivery).stdout.splitlines()]
    at = shown.index("1 2026-01-30 22:00:00Z 30.0 s timeout no answer in time")
    assert shown[at + 1 : at + 9] == [
        "dns 11, connect 22, tls 44, wait 29,923 ms",
        "203.0.113.7",
        "2 2026-01-30 22:01:01Z 12 ms status_4xx wait 86 ms",
        "61.0 s later 410 203.0.113.7, reused",
        "3 2026-01-30 22:03:34Z 12 ms refused_address 10.0.0.7 is not a public address",
        "153 s later now to https://hooks.new.example/",
        "",
        "answer to #2 gone�[31m",
    ]


def test_what_was_never_tried_has_no_timeline(shell: Shell) -> None:
    [delivery] = deliveries(1, an_operator("a"), status="pending")
    shown = shell.run("deliveries", "show", delivery).stdout
    assert "Nobody has tried yet." in shown
    assert "sent to" not in shown
