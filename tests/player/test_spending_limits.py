"""Who may play, and for how much: what every purchase and deposit asks first."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from sqlalchemy import text

from player.models.limits import (
    Limit,
    Standing,
    after_asking,
    assert_may_play,
    assert_within_limits,
    spent_in,
    standing_at,
)
from player.models.players import lock_player
from player.models.session import transaction
from player.models.tickets import Ticket
from protocol.errors import Conflict, Forbidden
from tests.player.factories import TICKET_PRICE, a_player, an_open_round

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def test_the_first_limit_and_a_lower_one_count_at_once() -> None:
    assert after_asking(Standing(), 5, NOW) == Standing(5)
    assert after_asking(Standing(5), 4, NOW) == Standing(4)
    assert after_asking(Standing(5), 0, NOW) == Standing(0)


@pytest.mark.parametrize("wanted", [6, None])
def test_a_higher_limit_and_none_at_all_wait_a_day(wanted: int | None) -> None:
    asked = after_asking(Standing(5), wanted, NOW)
    assert asked == Standing(5, wanted, NOW + DAY)
    assert standing_at(asked, NOW + DAY - timedelta(microseconds=1)).amount == 5
    assert standing_at(asked, NOW + DAY) == Standing(wanted)


def test_a_lower_limit_forgets_the_higher_one_that_waits() -> None:
    assert after_asking(Standing(5, 9, NOW), 4, NOW - DAY) == Standing(4)
    assert after_asking(Standing(5, None, NOW), 5, NOW - DAY) == Standing(5)


def test_only_what_is_looser_than_what_waits_waits_anew() -> None:
    waiting = Standing(5, 9, NOW)
    later = NOW - DAY / 2
    assert after_asking(waiting, 9, later) == waiting
    assert after_asking(waiting, 7, later) == Standing(5, 7, NOW)
    assert after_asking(waiting, 10, later) == Standing(5, 10, later + DAY)
    assert after_asking(waiting, None, later) == Standing(5, None, later + DAY)
    assert after_asking(Standing(5, None, NOW), 10, later) == Standing(5, 10, NOW)


def test_nobody_plays_who_is_suspended_or_excluded_herself(node: str) -> None:
    until = datetime.now(UTC) + DAY
    refused = {
        a_player(suspended_at=NOW, self_excluded_until=until).id: "suspended",
        a_player(self_excluded_until=until).id: "self_excluded",
    }
    for player_id, code in refused.items():
        with transaction() as session, pytest.raises(Forbidden) as refusal:
            assert_may_play(session, lock_player(session, player_id))
        assert refusal.value.code == code
    assert refusal.value.details["selfExclusionUntil"].endswith("Z")
    with transaction() as session:
        assert_may_play(session, lock_player(session, a_player(self_excluded_until=NOW).id))


def test_what_counts_is_what_was_paid_and_not_given_back_since_the_period_began(node: str) -> None:
    player_id, round_id = a_player().id, an_open_round()
    with transaction() as session:
        starts = {
            period: session.scalar(text(f"SELECT date_trunc('{period}', now())")) for period in ("day", "week", "month")
        }
        for when in (*starts.values(), *(start - timedelta(seconds=1) for start in starts.values())):
            session.add(_ticket(player_id, round_id, when))
        session.add(given_back := _ticket(player_id, round_id, datetime.now(UTC)))
        session.flush()
        given_back.status = "refunded"
    with transaction() as session:
        times = [*starts.values(), *(start - timedelta(seconds=1) for start in starts.values())]
        for period, start in starts.items():
            assert spent_in(session, player_id, period) == TICKET_PRICE * sum(when >= start for when in times)


def test_a_purchase_beyond_a_limit_is_refused_and_one_up_to_it_is_not(node: str) -> None:
    player_id, round_id = a_player().id, an_open_round()
    with transaction() as session:
        session.add(Limit(player_id=player_id, period="week", amount=2 * TICKET_PRICE))
        session.add(_ticket(player_id, round_id, datetime.now(UTC)))
    with transaction() as session:
        row = lock_player(session, player_id)
        assert_within_limits(session, row, TICKET_PRICE)
        with pytest.raises(Conflict) as refusal:
            assert_within_limits(session, row, TICKET_PRICE + 1)
    assert refusal.value.code == "limit_reached"
    assert refusal.value.details == {"period": "week", "limit": "6000000", "spent": "3000000"}


def test_a_higher_limit_counts_once_it_has_waited(node: str) -> None:
    player_id = a_player().id
    with transaction() as session:
        session.add(Limit(player_id=player_id, period="day", amount=0, next_amount=None, next_at=NOW - DAY * 365))
    with transaction() as session:
        assert_within_limits(session, lock_player(session, player_id), TICKET_PRICE)


def _ticket(player_id: int, round_id: int, when: datetime) -> Ticket:
    numbers = {"jackpot_number": 1, **{f"bonus{place}": 1 for place in range(1, 6)}}
    return Ticket(
        ticket_id=f"{round_id}-{uuid4().hex}", player_id=player_id, round_id=round_id, is_quick_pick=False,
        price=TICKET_PRICE, purchased_at=when, **numbers,
    )  # fmt: skip
