"""Public reads from memory: given again while nothing changed, and never once something has."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import event, text
from werkzeug.test import TestResponse

from app import read_cache
from models.session import engine, transaction
from tests.app.conftest import Caller
from tests.app.limited import PUBLIC, Make, ask, left
from tests.factories import a_round, some_operators
from tests.polling import until

LIST = "/api/public/operators"


def rename(name: str) -> None:
    with transaction() as session:
        session.execute(text("UPDATE operators SET name = :name"), {"name": name})


def name_shown(caller: Caller) -> str:
    name: str = caller.get(LIST).get_json()["operators"][0]["name"]
    return name


@pytest.fixture
def statements(house: None) -> list[str]:
    """What the engine of the transactions is asked."""
    asked: list[str] = []
    event.listen(engine(), "before_cursor_execute", lambda *args: asked.append(args[2]))
    return asked


def test_an_answer_is_given_again_without_its_queries(anybody: Caller, statements: list[str]) -> None:
    a_round(some_operators(2))

    def asked_twice() -> list[TestResponse]:
        answers = [anybody.get("/api/public/rounds")]
        statements.clear()
        answers.append(anybody.get("/api/public/rounds"))
        return [] if statements else answers

    # Not always at once: what other tests commit on the same server in between makes a snapshot another one, too.
    first, again = until(asked_twice)
    assert (again.data, again.content_type) == (first.data, first.content_type)
    assert again.headers["ETag"] == first.headers["ETag"]
    assert again.headers["Cache-Control"] == "public, no-cache"
    assert again.headers["Access-Control-Allow-Origin"] == "*"
    assert anybody.get("/api/public/rounds?limit=1").get_json()["count"] == 1
    assert statements != []


def test_a_client_that_has_the_answer_gets_304_until_it_changes(anybody: Caller) -> None:
    some_operators(1)
    etag = anybody.get(LIST).headers["ETag"]
    for _ in range(2):
        same = anybody.get(LIST, headers={"If-None-Match": etag})
        assert (same.status_code, same.data, same.headers["ETag"]) == (304, b"", etag)
        assert same.headers["Access-Control-Allow-Origin"] == "*"
    rename("changed")
    changed = anybody.get(LIST, headers={"If-None-Match": etag})
    assert changed.status_code == 200
    assert changed.headers["ETag"] != etag


def test_what_is_committed_is_shown_at_once_and_nothing_before(anybody: Caller) -> None:
    some_operators(1)
    assert name_shown(anybody) == "a"
    with transaction() as session:
        session.execute(text("UPDATE operators SET name = 'b'"))
        assert [name_shown(anybody), name_shown(anybody)] == ["a", "a"]
    assert name_shown(anybody) == "b"


def test_an_answer_made_while_somebody_commits_is_not_kept_as_newer_than_it_is(
    anybody: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Something is committed after the snapshot was taken, before and after the rows are read."""
    some_operators(1)
    ask: Callable[[], str | None] = read_cache.current_snapshot

    def then_somebody_commits() -> str | None:
        snapshot = ask()
        rename("while it was read")
        return snapshot

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(read_cache, "current_snapshot", then_somebody_commits)
        assert name_shown(anybody) == "while it was read"
    rename("after it was read")
    assert name_shown(anybody) == "after it was read"


def test_everybody_reads_their_own_writes_under_load(anybody: Caller) -> None:
    some_operators(1)
    application = anybody.client.application

    def read(_: int) -> None:
        reader = Caller(application.test_client(), {})
        for _ in range(40):
            name_shown(reader)

    with ThreadPoolExecutor(4) as readers:
        reading = [readers.submit(read, number) for number in range(4)]
        for number in range(60):
            rename(str(number))
            assert name_shown(anybody) == str(number)
        for each in reading:
            each.result()


def test_the_counter_may_be_a_second_old_and_says_so(
    anybody: Caller, statements: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1_000.0]
    monkeypatch.setattr(read_cache.time, "monotonic", lambda: clock[0])
    path = "/api/public/jackpot-counter"
    first = anybody.get(path)
    assert first.headers["Cache-Control"] == "public, max-age=1"
    with transaction() as session:
        session.execute(text("UPDATE jackpot SET draws_since_last_win = 7"))
    clock[0] += 0.9
    statements.clear()
    assert anybody.get(path).data == first.data
    assert anybody.get(path, headers={"If-None-Match": first.headers["ETag"]}).status_code == 304
    assert statements == []
    clock[0] += 0.2
    assert anybody.get(path).get_json()["drawsSinceLastWin"] == 7


def test_the_counter_is_asked_for_once_a_second_when_nothing_changes(
    anybody: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, asked = [1_000.0], []
    ask: Callable[[], str | None] = read_cache.current_snapshot
    monkeypatch.setattr(read_cache.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(read_cache, "current_snapshot", lambda: asked.append(clock[0]) or ask())
    for _ in range(40):
        anybody.get("/api/public/jackpot-counter")
        clock[0] += 0.1
    assert len(asked) == 4


def test_errors_and_private_answers_are_not_kept(anybody: Caller) -> None:
    assert anybody.get("/api/public/rounds/1").status_code == 404
    a_round(some_operators(1))
    found = anybody.get("/api/public/rounds/1")
    assert found.status_code == 200
    assert "ETag" not in anybody.get("/api/public/rounds/2").headers
    assert "ETag" not in anybody.get("/api/public/application-status/none").headers


def test_memory_is_bounded_and_forgets_what_was_not_asked_for() -> None:
    memory = read_cache._Memory(10_000)
    answer = read_cache._Kept("1:1:", 0.0, 0, b"x" * 1_000, ())
    for place in range(20):
        memory.put((str(place), ""), answer)
        assert memory.get(("0", "")) is answer
    kept = [place for place in range(20) if memory.get((str(place), "")) is not None]
    assert kept == [0, 16, 17, 18, 19]


def test_an_answer_from_memory_counts_like_any_other(app_with: Make) -> None:
    client = app_with(RATE_LIMIT_PUBLIC="5/minute")
    paths = [PUBLIC, PUBLIC, "/api/public/jackpot-counter", "/api/public/jackpot-counter", PUBLIC]
    assert [left(ask(client, path)) for path in paths] == [(5, 4), (5, 3), (5, 2), (5, 1), (5, 0)]
    for path in set(paths):
        refused = ask(client, path)
        assert refused.status_code == 429
        assert left(refused) == (5, 0)


def test_a_changed_answer_is_counted_once(app_with: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    client = app_with(RATE_LIMIT_PUBLIC="5/minute")
    snapshots = iter(["1:1:", "2:2:", "3:3:"])
    monkeypatch.setattr(read_cache, "current_snapshot", lambda: next(snapshots))
    assert [left(ask(client)) for _ in range(3)] == [(5, 4), (5, 3), (5, 2)]
