"""What has happened in the world that the tests look at: nine companies and six rounds.

One rule: it happens once, before the first test, and no test undoes any of it. Luck alone is arranged, by a trigger
that gives one round odds so good that its jackpot is surely won.
"""

from __future__ import annotations

import json

from protocol.rules import Rules
from tests.contract.world import CLOSED, DRAWN, FAILED, OPEN, PRICE, TICKETS, UNHEARD, WON, World

GENEROUS = Rules(
    ticket_price=PRICE,
    odds_range=3,
    fee_bps=500,
    commission_bps=1_000,
    reserve_bps=400,
    winner_bonus_bps=1_000,
    prizes=(250_000, 10_000, 1_000, 100, 50),
    ranges=(4, 4, 3, 3, 2),
)

TAKE_NOTHING = {"lenta": "slow", "desviada": "302", "callada": "204", "rota": "500", "cerrada": "401"}
"""Operators that do not answer their webhooks with 200 in time, and what their receivers do."""


def play(world: World) -> None:
    """Everything the tests look at. The last two rounds stay open."""
    alba, brio, cava = world.approve("alba"), world.approve("brio"), world.approve("cava", funds=0)
    world.approve("dora")

    assert world.open_round([alba, brio]) == FAILED
    world.take_to(FAILED, "seal_at", "FAILED")

    assert world.open_round([alba, brio, cava]) == CLOSED
    for party in (alba, brio, cava):
        world.submit(party, CLOSED, TICKETS)
    # cava cannot pay, so the round waits in SEALED until the deadline for escrow is over.
    for stage, state in (
        ("seal_at", "SEALING"),
        ("sealing_deadline", "SEALED"),
        ("escrow_deadline", "ESCROWED"),
        ("scheduled_draw_time", "DRAWN"),
        ("settle_at", "SETTLED"),
        ("close_at", "CLOSED"),
    ):
        world.seen[state] = world.take_to(CLOSED, stage, state)

    _make_generous(world)
    assert world.open_round([alba, brio]) == WON
    for party in (alba, brio):
        world.submit(party, WON, TICKETS, GENEROUS.number_ranges)
    world.take_to(WON, "settle_at", "SETTLED")

    assert world.open_round([alba, brio]) == DRAWN
    for party in (alba, brio):
        world.submit(party, DRAWN, TICKETS)
    world.take_to(DRAWN, "scheduled_draw_time", "DRAWN")

    assert world.open_round([alba, brio]) == OPEN
    world.submit(alba, OPEN, 5)
    world.sell(brio, OPEN, 3)

    unheard = [world.approve(company, path=f"{does}/{company}") for company, does in TAKE_NOTHING.items()]
    assert world.open_round(unheard) == UNHEARD

    for party in (alba, brio):
        world.send("/api/operator/heartbeat", headers=party.headers)
    world.rows("UPDATE operators SET due_at = now(), ring_at = now() WHERE id = %s", alba.id)


def _make_generous(world: World) -> None:
    world.rows(
        f"""
        CREATE FUNCTION be_generous() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            NEW.rules := %s::jsonb;
            NEW.rules_hash := %s;
            RETURN NEW;
        END $$;
        CREATE TRIGGER be_generous BEFORE INSERT ON rounds
            FOR EACH ROW WHEN (NEW.id = {WON}) EXECUTE FUNCTION be_generous();
        """,
        json.dumps(GENEROUS.as_hashed()),
        GENEROUS.hash,
    )
