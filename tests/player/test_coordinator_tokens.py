"""How the client stays logged in: lazily, before the end, once on 401, and in many threads at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from player.coordinator import Forbidden, RateLimited, Unauthorized
from tests.player.stubborn import GONE, INVALID, TORN, Stubborn


def test_it_logs_in_when_something_is_asked_and_then_no_more(stubborn: Stubborn) -> None:
    client = stubborn.client()
    assert stubborn.asked == []
    client.rounds()
    client.rounds()
    assert stubborn.paths() == ["login", "rounds", "rounds"]


def test_it_refreshes_before_the_token_ends(stubborn: Stubborn) -> None:
    client = stubborn.client()
    client.rounds()
    stubborn.clock.now += 839
    client.rounds()
    stubborn.clock.now += 2  # less than a minute is left
    client.rounds()
    assert stubborn.paths() == ["login", "rounds", "rounds", "refresh", "rounds"]
    assert stubborn.bearers() == ["a1", "a2"]
    assert stubborn.asked[3][2] == b'{"refreshToken": "r1"}'


def test_a_token_that_is_refused_is_refreshed_once(stubborn: Stubborn) -> None:
    stubborn.answers = [INVALID]
    stubborn.client().rounds()
    assert stubborn.paths() == ["login", "rounds", "refresh", "rounds"]
    assert stubborn.bearers() == ["a1", "a2"]


@pytest.mark.parametrize("lost", [INVALID, TORN, GONE, (500, {})])
def test_a_refresh_that_may_have_been_used_up_is_followed_by_a_login(
    stubborn: Stubborn, lost: tuple[int, object] | str
) -> None:
    stubborn.answers, stubborn.refreshes = [INVALID], [lost]
    stubborn.client().rounds()
    assert stubborn.paths() == ["login", "rounds", "refresh", "login", "rounds"]


def test_a_refresh_that_came_too_often_is_still_good(stubborn: Stubborn) -> None:
    client = stubborn.client()
    client.rounds()
    stubborn.clock.now += 900
    stubborn.refreshes = [(429, {}, {"Retry-After": "3600"})]
    with pytest.raises(RateLimited):
        client.rounds()
    client.rounds()
    assert stubborn.paths() == ["login", "rounds", "refresh", "refresh", "rounds"]


def test_who_is_refused_with_a_new_token_too_is_not_known(stubborn: Stubborn) -> None:
    stubborn.answers = [INVALID, INVALID]
    with pytest.raises(Unauthorized, match="invalid_token"):
        stubborn.client().rounds()
    assert stubborn.paths() == ["login", "rounds", "refresh", "rounds"]


def test_a_key_that_is_refused_is_not_tried_again(stubborn: Stubborn) -> None:
    client = stubborn.client()
    for answer, kind in ((INVALID, Unauthorized), ((403, {"error": "no", "code": "suspended"}), Forbidden)):
        stubborn.logins, stubborn.asked = [answer], []
        with pytest.raises(kind):
            client.rounds()
        assert stubborn.paths() == ["login"]


def test_many_threads_share_one_session(stubborn: Stubborn) -> None:
    client = stubborn.client()
    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(lambda _: client.rounds(), range(40)):
            pass
    assert stubborn.paths().count("login") == 1
    stubborn.dead = {"a1"}
    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(lambda _: client.rounds(), range(8)):
            pass
    assert (stubborn.paths().count("login"), stubborn.paths().count("refresh")) == (1, 1)


def test_a_new_key_begins_a_new_session(stubborn: Stubborn) -> None:
    client = stubborn.client()
    client.rounds()
    client.use_key("sk_two_other")
    client.rounds()
    assert [body for path, _, body in stubborn.asked if path.endswith("login")][1] == b'{"apiKey": "sk_two_other"}'


def test_leaving_logs_out_and_does_not_mind_if_that_fails(stubborn: Stubborn) -> None:
    with stubborn.client() as client:
        client.rounds()
        stubborn.answers = [GONE]
    assert stubborn.paths() == ["login", "rounds", "logout"]
    with stubborn.client():
        pass
    assert len(stubborn.asked) == 3
    with stubborn.client() as client:
        client.rounds()
        stubborn.answers = [(429, {}, {"Retry-After": "60"})]
    assert stubborn.clock.slept == []
