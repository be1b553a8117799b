"""``checked`` and ``payable``: prizes get their amounts, players claim them, the coordinator is told of it.

The one rule kept here: an amount is written once, from the coordinator's settlement, in the transaction that makes the
sales ours.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

from player.coordinator import Win
from player.coordinator.batches import MOST_PAYOUTS
from player.models.looks import end, hold
from player.models.round_money import settle_sales
from player.models.rounds import Stage
from player.models.session import database_now, transaction
from player.models.winnings import counted, expire, make_certain, note_reported, open_prizes, unreported
from player.settings import settings
from player.tasks.looking import Disagreement, Look


def settle(look: Look) -> datetime | None:
    """``checked`` → ``payable``, once the coordinator has settled the round."""
    own = look.own
    if own.state == "FAILED" or own.excluded_reason is not None:
        raise Disagreement("the round was drawn, and now it is said to have failed")
    if own.state not in ("SETTLED", "CLOSED"):
        return look.soon
    told = {tier.tier: (tier.winner_count, int(tier.total_payout)) for tier in look.coordinator.sub_prizes(own.id)}
    draw = look.coordinator.draw(own.id)
    told[0] = (draw.jackpot_winner_count, int(draw.jackpot_amount))
    with transaction() as session:
        row = hold(session, own.id, Stage.CHECKED)
        make_certain(session, row.id, _shares(told, counted(session, row.id)))
        settle_sales(session, row.id)
        if own.claim_deadline is not None:
            # A prize claimed in the last moment would be reported after the deadline, when nobody gives us the money.
            row.claim_deadline = own.claim_deadline - timedelta(seconds=settings().sales_lead_seconds)
        row.stage = Stage.PAYABLE
    return look.now


def _shares(told: Mapping[int, tuple[int, int]], ours: Mapping[int, int]) -> dict[int, int]:
    """What a prize is worth in each tier that tickets of ours won in, micro-USDC. ``told``: winners and what they are
    paid together, by tier; ``ours``: how many of the winners are ours.

    A settlement that knows of fewer winners than we have would make their prizes worth nothing, for good.

    :raises Disagreement: it does, or pays less than nothing.
    """
    for tier, count in ours.items():
        winners, payout = told.get(tier, (0, 0))
        if winners < count or payout < 0:
            raise Disagreement(f"{count} tickets of ours won in tier {tier}, and {payout} is paid to {winners} in all")
    return {tier: told[tier][1] // told[tier][0] for tier in ours}


def pay(look: Look) -> datetime | None:
    """``payable`` → ``done``: report what was claimed; what is not claimed in time expires."""
    row = look.row
    with transaction() as session:
        paid = unreported(session, row.id, MOST_PAYOUTS)
    if paid:
        look.coordinator.report_payouts(row.id, [Win(tier, ticket_id) for tier, ticket_id in paid.values()])
        with transaction() as session:
            note_reported(session, paid)
        if len(paid) == MOST_PAYOUTS:
            return look.now
    over = row.claim_deadline is not None and row.claim_deadline <= look.now
    with transaction() as session:
        if over:
            expire(session, row.id)
        left = open_prizes(session, row.id)
    if left == 0 and look.own.state == "CLOSED":
        with transaction() as session:
            held = hold(session, row.id, Stage.PAYABLE)
            end(session, held, Stage.DONE, database_now(session))
        return None
    return look.now + timedelta(seconds=settings().submit_every_seconds)
