"""Limits and self-exclusion, as a player sets them over the API."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

from flask.testing import FlaskClient
from sqlalchemy import text, update

from player.models.limits import Limit
from player.models.players import Player
from player.models.session import transaction
from protocol.timestamps import parse_timestamp
from tests.player.factories import APlayer, a_player


def _limits(client: FlaskClient, who: APlayer) -> Any:
    return client.get("/api/player/limits", headers=who.headers).json


def _set(client: FlaskClient, who: APlayer, **wanted: Any) -> Any:
    return client.post("/api/player/limits", json=wanted, headers=who.headers)


def _exclude(client: FlaskClient, who: APlayer, days: Any) -> Any:
    return client.post("/api/player/self-exclusion", json={"durationDays": days}, headers=who.headers)


def _in(span: timedelta, when: str) -> bool:
    return abs(parse_timestamp(when) - datetime.now(UTC) - span) < timedelta(minutes=5)


def test_a_player_without_limits_has_none(client: FlaskClient) -> None:
    assert _limits(client, a_player()) == {
        "dailyLimit": None, "weeklyLimit": None, "monthlyLimit": None, "selfExclusionUntil": None, "pending": {},
    }  # fmt: skip


def test_limits_tighten_at_once_and_loosen_a_day_later(client: FlaskClient) -> None:
    who = a_player()
    first = _set(client, who, dailyLimit="9000000", weeklyLimit="20000000").json
    assert (first["success"], first["limits"]) == (True, _limits(client, who))
    assert (first["limits"]["dailyLimit"], first["limits"]["monthlyLimit"]) == ("9000000", None)
    lower = _set(client, who, dailyLimit="6000000").json["limits"]
    assert (lower["dailyLimit"], lower["weeklyLimit"], lower["pending"]) == ("6000000", "20000000", {})
    higher = _set(client, who, dailyLimit="12000000", weeklyLimit=None).json["limits"]
    assert (higher["dailyLimit"], higher["weeklyLimit"]) == ("6000000", "20000000")
    assert higher["pending"]["dailyLimit"]["limit"] == "12000000"
    assert higher["pending"]["weeklyLimit"]["limit"] is None
    assert _in(timedelta(days=1), higher["pending"]["weeklyLimit"]["effectiveAt"])
    assert _set(client, who, dailyLimit="5000000").json["limits"]["pending"] == {
        "weeklyLimit": higher["pending"]["weeklyLimit"]
    }
    with transaction() as session:
        session.execute(update(Limit).values(next_at=text("next_at - interval '1 day'")))
    later = _limits(client, who)
    assert (later["dailyLimit"], later["weeklyLimit"], later["pending"]) == ("5000000", None, {})
    assert _set(client, who, dailyLimit="0").json["limits"]["dailyLimit"] == "0"


def test_what_is_no_limit_is_refused(client: FlaskClient) -> None:
    who = a_player()
    for amount in (5, "-1", "1.5", "1" * 17, ""):
        assert _set(client, who, dailyLimit=amount).status_code == 422, amount
    assert _set(client, who).status_code == 422
    assert _set(client, who, yearlyLimit="5").status_code == 422


def test_of_limits_set_at_the_same_time_the_tightest_stays(client: FlaskClient) -> None:
    who = a_player()
    amounts = ["7000000", "3000000", "9000000", "5000000"]
    with ThreadPoolExecutor(4) as four:
        statuses = four.map(
            lambda amount: _set(client.application.test_client(), who, dailyLimit=amount).status_code, amounts
        )
    assert set(statuses) == {200}
    assert _limits(client, who)["dailyLimit"] == "3000000"


def test_a_self_exclusion_grows_and_never_shrinks(client: FlaskClient) -> None:
    who = a_player()
    first = _exclude(client, who, 7).json
    assert first["success"] is True
    assert _in(timedelta(days=7), first["selfExclusionUntil"])
    longer = _exclude(client, who, 30).json["selfExclusionUntil"]
    refused = _exclude(client, who, 29)
    assert (refused.status_code, refused.json["code"]) == (409, "exclusion_shortened")
    assert refused.json["details"] == {"selfExclusionUntil": longer}
    assert _limits(client, who)["selfExclusionUntil"] == longer


def test_an_exclusion_that_is_over_is_not_shown_and_does_not_count(client: FlaskClient) -> None:
    who = a_player(self_excluded_until=datetime(2026, 1, 1, tzinfo=UTC))
    assert _limits(client, who)["selfExclusionUntil"] is None
    assert _exclude(client, who, 1).status_code == 200


def test_what_is_no_duration_is_refused(client: FlaskClient) -> None:
    who = a_player()
    for days in (0, 3651, -1, 1.5, "7", True, None):
        assert _exclude(client, who, days).status_code == 422, days


def test_of_exclusions_at_the_same_time_the_longest_stays(client: FlaskClient) -> None:
    who = a_player()
    with ThreadPoolExecutor(4) as four:
        list(four.map(lambda days: _exclude(client.application.test_client(), who, days), [10, 400, 20, 300]))
    with transaction() as session:
        until = session.get_one(Player, who.id).self_excluded_until
    assert until is not None
    assert until > datetime.now(UTC) + timedelta(days=399)
