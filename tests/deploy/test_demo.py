"""The demo's own parts: a receiver that is not fooled, deadlines that suit the machine, tables that say what was said.

The demo as a whole is `make demo`, which checks itself.
"""

from __future__ import annotations

import http.client
import io
import os
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import requests
from rich.console import Console
from rich.table import Table
from sqlalchemy.engine import make_url

from deploy.demo import _inherited, _last_words
from deploy.demo_operator import LABELS, SimulatedOperator
from deploy.demo_receiver import Event, Receiver
from deploy.demo_report import Account, accounts_table, draw_table, money_table, timeline_table
from deploy.demo_round import Pace
from deploy.demo_screen import Screen, usd
from deploy.failure import EngineError
from deploy.given import refuse_unless_empty
from player.coordinator import Micro, Winner, Winners, WinnersOfTier
from protocol.webhook import envelope, headers

KEY = "sk_one_secret"
BODY = envelope("round.drawn", 1, "2026-01-02T03:04:05.678Z", {"roundId": 1})


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


def send(receiver: Receiver, body: bytes = BODY, key: str = KEY, delivery_id: str = "d1", to: str = "op_1") -> int:
    receiver.url_for("op_1", KEY)
    url = receiver.url_for("op_1", KEY).replace("op_1", to)
    return requests.post(url, body, headers=headers("round.drawn", delivery_id, 1, body, key), timeout=10).status_code


def test_a_signed_webhook_is_taken_and_kept(receiver: Receiver) -> None:
    assert send(receiver) == 200
    (event,) = receiver.events
    assert (event.operator_id, event.delivery_id, event.name, event.round_id) == ("op_1", "d1", "round.drawn", 1)
    assert event.data == {"roundId": 1}
    assert event.sent_for == datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
    assert receiver.news.is_set()


def test_a_wrong_signature_is_answered_401_and_only_counted(receiver: Receiver) -> None:
    assert send(receiver, key="sk_two_secret") == 401
    assert (receiver.events, receiver.refused, receiver.news.is_set()) == ([], 1, False)


def test_a_body_changed_on_the_way_is_answered_401(receiver: Receiver) -> None:
    signed = headers("round.drawn", "d1", 1, BODY, KEY)
    changed = BODY.replace(b'"roundId":1', b'"roundId":2')
    assert requests.post(receiver.url_for("op_1", KEY), changed, headers=signed, timeout=10).status_code == 401
    assert receiver.events == []


def test_a_webhook_without_a_signature_is_answered_401(receiver: Receiver) -> None:
    assert requests.post(receiver.url_for("op_1", KEY), BODY, timeout=10).status_code == 401


def test_the_same_delivery_again_is_answered_200_and_kept_once(receiver: Receiver) -> None:
    assert [send(receiver), send(receiver), send(receiver, delivery_id="d2")] == [200, 200, 200]
    assert [event.delivery_id for event in receiver.events] == ["d1", "d2"]


def test_nobody_else_is_listened_to(receiver: Receiver) -> None:
    assert send(receiver, to="op_2") == 404


def test_a_webhook_of_no_length_or_an_absurd_one_is_answered_400(receiver: Receiver) -> None:
    host = receiver.url_for("op_1", KEY).removeprefix("http://").partition("/")[0]
    for length in (None, "-1", "ten", "9" * 12):
        connection = http.client.HTTPConnection(host, timeout=10)
        connection.putrequest("POST", "/op_1")
        if length is not None:
            connection.putheader("Content-Length", length)
        connection.endheaders()
        assert connection.getresponse().status == 400
        connection.close()


@pytest.mark.parametrize(("start", "slowness"), [(1, 1.0), (8, 2.0), (100, 3.0)])
def test_a_slow_machine_gets_later_deadlines_up_to_three_times(start: float, slowness: float) -> None:
    pace = Pace.of_a_machine_that_starts_in(start)
    assert pace.slowness == slowness
    opened = datetime(2026, 1, 1, tzinfo=UTC)
    moments = [datetime.fromisoformat(moment) for moment in pace.deadlines(opened).values()]
    assert moments == sorted(moments)
    assert (moments[-1] - opened).total_seconds() == pytest.approx(20 * slowness)
    assert (moments[-1] - opened).total_seconds() < pace.patience


def test_the_same_seed_sells_the_same_tickets() -> None:
    first, second = (SimulatedOperator("http://nowhere", "Operator Alba", random.Random("7 Alba")) for _ in range(2))
    first.sell(50, 10_000_000)
    second.sell(50, 10_000_000)
    assert first.tickets == second.tickets
    numbers = dict(zip(LABELS, first.tickets[3].numbers, strict=True))
    assert {(tier, "alba-3") for tier in range(6)} <= first.winners_in_its_books(numbers)


@pytest.mark.parametrize(
    ("micro", "dollars"), [(0, "0.00"), (1_500_000, "1.50"), (1_234_567_890, "1,234.56789"), (1, "0.000001")]
)
def test_dollars_keep_every_digit(micro: int, dollars: str) -> None:
    assert usd(micro) == dollars


def shown(table: Table) -> list[list[str]]:
    """The table's lines, each cut at wide gaps."""
    console = Console(file=io.StringIO(), width=100)
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines if line.strip()]


def test_the_timeline_says_who_heard_of_what_and_how_late() -> None:
    opened = datetime(2026, 1, 1, 12, tzinfo=UTC)
    events = [
        Event(f"op_{n}", f"d{n}", "round.opened", 1, {}, opened, opened.replace(microsecond=n * 20_000))
        for n in range(3)
    ]
    timeline = [
        {"trigger": "opened", "state": "OPEN", "at": "2026-01-01T12:00:00.000Z"},
        {"trigger": "seed_fixed", "state": "ESCROWED", "at": "2026-01-01T12:00:01.250Z"},
        {"trigger": "matching_complete", "state": "DRAWN", "at": "2026-01-01T12:00:01.500Z"},
    ]
    assert shown(timeline_table(timeline, events, 5))[3:] == [
        ["12:00:00.000", "0.00", "OPEN", "round.opened", "3/5", "40 ms"],
        ["12:00:01.250", "1.25", "ESCROWED", "(seed fixed)"],
        ["12:00:01.500", "1.50", "DRAWN", "round.drawn", "0/5", "–"],
    ]


def test_the_draw_shows_a_shared_jackpot() -> None:
    numbers = {"jackpotNumber": 1_234_567, "bonus1": 9}
    tier = WinnersOfTier(1, (Winner("op_1", "t", Micro(5_000_000), claimed=False),), 1)
    winners = Winners("draw_1", 1, True, 2, Micro(3_000_000), (tier,), 1)
    assert shown(draw_table(numbers, winners))[3:] == [
        ["jackpot", "1,234,567", "2", "1.50"],
        ["bonus1", "9", "1", "5.00"],
    ]


def test_the_money_shows_both_sides_and_their_sums() -> None:
    names = ("G", "pool0", "reserve0", "feeKept", "C", "bonusPaid", "subPaid", "jackpotPaid", "pool1", "reserve1")
    terms = {name: str(place * 1_000_000) for place, name in enumerate(names, 1)}
    lines = shown(money_table(terms))
    assert ["tickets sold", "1.00"] in lines
    assert lines[-1] == ["together", "6.00", "49.00"]


def test_a_balance_shows_how_it_came_about() -> None:
    account = Account("Operator Alba", 10, 3, 90_000_000)
    line = shown(accounts_table([account], 3_000_000, 100_000_000))[-1]
    assert line == ["Operator Alba", "3", "100.00", "30.00", "20.00", "90.00"]


def test_a_pipe_gets_plain_lines() -> None:
    file = io.StringIO()
    screen = Screen(Console(file=file, highlight=False, soft_wrap=True))
    with screen.counting("tickets", 10) as done, screen.waiting() as waiting:
        done(10)
        waiting("waiting")
        screen.step("an answer with [brackets] in it")
    assert file.getvalue() == "   0.0 s  an answer with [brackets] in it\n"


def test_the_logs_that_complain_are_the_ones_quoted(tmp_path: Path) -> None:
    (tmp_path / "web.log").write_text('{"event": "fine", "level": "info"}\n')
    (tmp_path / "worker.log").write_text('{"event": "bad", "level": "error"}\n')
    said = _last_words(tmp_path)
    assert "worker.log ends with" in said
    assert "web.log" not in said


def test_no_setting_of_the_surroundings_but_the_servers_gets_in() -> None:
    given = {"PATH": "/bin", "LANG": "C.UTF-8", "DATABASE_URL": "postgresql://theirs", "FEE_BPS": "1", "HOST": "::"}
    assert _inherited(given) == {"PATH": "/bin", "LANG": "C.UTF-8", "DATABASE_URL": "postgresql://theirs"}


def test_it_does_not_play_in_somebodys_database(template_database: str) -> None:
    used = make_url(os.environ["DATABASE_URL"]).set(database=template_database)
    with pytest.raises(EngineError, match="has tables in it"):
        refuse_unless_empty(used.render_as_string(hide_password=False), None)
