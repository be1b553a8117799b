"""A coordinator that says what cannot be true: nothing moves, and somebody is told to look."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import text

from player.coordinator import Micro, TierPayout
from player.models.prizes import Prize
from player.models.session import database_now, transaction
from player.tasks.looking import Disagreement, Look
from player.tasks.paying import settle
from tests.player.coordinating import the_round
from tests.player.factories import TICKET_PRICE, a_player, a_prize, a_sold_ticket, an_open_round


def test_what_is_said_of_another_round_gives_nobody_her_money_back(node: str) -> None:
    an_open_round()
    ana = a_player(balance=TICKET_PRICE)
    a_sold_ticket(ana)
    failed = SimpleNamespace(id=8, state="FAILED", excluded_reason=None, failure_reason="no_manifests")
    with transaction() as session:
        look = Look(the_round(7), database_now(session), SimpleNamespace(round=lambda _: failed))  # type: ignore[arg-type]
    with pytest.raises(Disagreement):
        look.lost()
    assert the_round(7).stage == "selling"


class Settled:
    """A coordinator that has settled round 7: ``tiers`` are its winners and what they are paid together."""

    def __init__(self, tiers: dict[int, tuple[int, int]], jackpot: tuple[int, int] = (0, 0)) -> None:
        self._tiers, self._jackpot = tiers, jackpot

    def round(self, round_id: int) -> Any:
        """The round from our side."""
        return SimpleNamespace(id=round_id, state="SETTLED", excluded_reason=None, claim_deadline=None)

    def sub_prizes(self, round_id: int) -> Any:
        """What the tiers pay."""
        return [TierPayout(tier, winners, Micro(payout)) for tier, (winners, payout) in self._tiers.items()]

    def draw(self, round_id: int) -> Any:
        """What the jackpot pays."""
        return SimpleNamespace(jackpot_winner_count=self._jackpot[0], jackpot_amount=self._jackpot[1])


def test_a_settlement_that_forgets_our_winners_makes_no_prize_worthless(node: str) -> None:
    an_open_round()
    ana = a_player(balance=3 * TICKET_PRICE)
    prizes = [a_prize(ana, None, tier=tier) for tier in (5, 5, 0)]
    with transaction() as session:
        session.execute(text("UPDATE rounds SET stage = 'checked'"))
        now = database_now(session)

    def told(tiers: dict[int, tuple[int, int]], jackpot: tuple[int, int]) -> None:
        settle(Look(the_round(7), now, Settled(tiers, jackpot)))  # type: ignore[arg-type]

    for tiers, jackpot in (
        ({5: (1, 5_000_000)}, (1, 9)),
        ({5: (0, 0)}, (1, 9)),
        ({}, (1, 9)),
        ({5: (2, -10_000_000)}, (1, 9)),
        ({5: (2, 10_000_000)}, (0, 9)),
    ):
        with pytest.raises(Disagreement):
            told(tiers, jackpot)
    assert the_round(7).stage == "checked"
    told({4: (0, 0), 5: (3, 15_000_000)}, (2, 9))
    with transaction() as session:
        assert [session.get_one(Prize, prize).amount for prize in prizes] == [5_000_000, 5_000_000, 4]
