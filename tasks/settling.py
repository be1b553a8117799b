"""Settling: the money is released, the round is closed.

The one rule kept here: money moves only when both tabulations agree (``tasks.tabulating``). A difference stops the
round in DRAWN, where a human finds it.
"""

from datetime import datetime

from sqlalchemy.orm import Session

from models.draws import Draw
from models.expiries import plan_expiry, reserve_beyond_credits
from models.jackpot import jackpot
from models.ledger import FEE, POOL, RESERVE, balance, escrow_account, operator_account, post
from models.rounds import Round
from models.settings import settings
from protocol.lifecycle import Trigger
from protocol.settlement import Terms, settlement_hash, settlement_proof
from tasks.steps import Announcement, carry_out


def settle(session: Session, row: Round, now: datetime) -> None:
    """DRAWN → SETTLED: everything is posted in one posting and the lottery's state moves on."""
    assert row.chained_anchor_hash is not None  # a DRAWN round has all of this
    assert row.effective_manifest_hash is not None
    drawn = session.get_one(Draw, row.id)
    assert drawn.terms is not None
    assert drawn.releases is not None
    assert drawn.winner_counts is not None
    assert drawn.winners_root is not None
    terms = Terms(**{name: int(amount) for name, amount in drawn.terms.items()})
    proof = settlement_proof(
        row.id,
        row.chained_anchor_hash,
        row.effective_manifest_hash,
        drawn.draw_seed,
        drawn.numbers,
        drawn.winner_counts,
        drawn.winners_root,
        terms,
    )
    row.settlement_hash = settlement_hash(proof)
    released = {operator_account(operator_id): int(total) for operator_id, total in drawn.releases.items()}
    moved = {
        escrow_account(row.id): -terms.G,
        FEE: terms.feeKept,
        POOL: terms.pool1 - terms.pool0,
        RESERVE: terms.reserve1 - terms.reserve0,
        **released,
    }
    post(session, f"settlement:{row.id}", "settlement", moved, row.id)
    _check_books(session, row, terms)
    plan_expiry(session, row.id, now, settings().claim_days)

    lottery = jackpot(session, for_update=True)
    lottery.cumulative_tickets += row.total_tickets or 0
    lottery.draws_since_last_win = 0 if terms.k else lottery.draws_since_last_win + 1
    if terms.k:
        lottery.last_win_round_id = row.id
    told = {
        "settlementHash": row.settlement_hash,
        "winningOperatorId": drawn.winning_operator_id,
        "totalPotUsdc": terms.G,
        "serviceFeeUsdc": terms.feeKept,
        "operatorPoolUsdc": terms.C,
        "winnerBonusUsdc": terms.bonusPaid,
        "winnerPayoutUsdc": terms.jackpotPaid,
    }
    news = Announcement({"settlementHash": row.settlement_hash}, {"round.settled": told})
    carry_out(session, row, Trigger.TABULATIONS_AGREED, news, now)


def _check_books(session: Session, row: Round, terms: Terms) -> None:
    """Refuse to commit a settlement after which the accounts hold anything else than the terms say.

    :raises ArithmeticError: they do. Nothing of the settlement happens then, and the round stays DRAWN.
    """
    # That the terms add up they have checked themselves, that the posting does the database will. This is what is left
    # in the accounts: the round's escrow is used up, and pool and reserve are what the next round is told.
    held = {
        "escrow": balance(session, escrow_account(row.id)),
        "pool1": balance(session, POOL),
        "reserve1": reserve_beyond_credits(session),
    }
    promised = {"escrow": 0, "pool1": terms.pool1, "reserve1": terms.reserve1}
    if held != promised:
        raise ArithmeticError(f"round {row.id} would leave {held} and promises {promised}")


def close(session: Session, row: Round, now: datetime) -> None:
    """SETTLED → CLOSED."""
    told = {"totalTickets": row.total_tickets, "totalOperators": row.escrowed_operator_count}
    carry_out(session, row, Trigger.CLOSE_TIME, Announcement(rounds={"round.closed": told}), now)
