"""Drawing: the seed is fixed once, all tickets are matched, a shard at a time, and the round shows its winners.

The one rule kept here: numbers and winners become public together, in the transaction that makes the round DRAWN; until
then the draw's row is ours alone.
"""

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.orm import Session

from models.draws import Draw, award, first_jackpots, stream_winners, win_counts
from models.encryption import decrypt
from models.expiries import reserve_for
from models.ledger import POOL, balance
from models.matching import Stretch, match_tickets, stretches
from models.operators import Operator, count_up
from models.participation import Participation, participations
from models.rounds import Round
from models.settings import settings
from models.tickets import count_tickets_before
from models.work import Kind, Piece, plan, plan_shards
from protocol.lifecycle import Trigger
from protocol.numbers import draw_numbers
from protocol.seed import draw_seed
from protocol.settlement import Settlement, Stake, settle, winners_root_in_order
from tasks.bell import Bell, ring_after_commit
from tasks.steps import Announcement, carry_out


def fix_seed(session: Session, row: Round, now: datetime) -> None:
    """ESCROWED, no change of state: derive the seed and numbers, once, and plan the matching."""
    assert row.chained_anchor_hash is not None  # an ESCROWED round has all three
    assert row.effective_manifest_hash is not None
    assert row.secret_encrypted is not None
    effective = _effective(session, row.id)
    seed = draw_seed(
        row.id,
        row.mode,
        row.chained_anchor_hash,
        row.effective_manifest_hash,
        decrypt(row.secret_encrypted),
        {part.operator_id: part.nonce for part in effective if part.nonce is not None},
        None,
    )
    numbers = draw_numbers(seed, row.parsed_rules.number_ranges)
    jackpot_number, bonus1, bonus2, bonus3, bonus4, bonus5 = numbers
    session.add(
        Draw(
            round_id=row.id,
            draw_seed=seed,
            jackpot_number=jackpot_number,
            bonus1=bonus1,
            bonus2=bonus2,
            bonus3=bonus3,
            bonus4=bonus4,
            bonus5=bonus5,
        )
    )
    carry_out(session, row, Trigger.SEED_FIXED, Announcement(), now)
    plan_matching(session, row.id)


def plan_matching(session: Session, round_id: int) -> None:
    """Cut the round's tickets into shards and call for them."""
    parts = [stretch._asdict() for stretch in stretches(session, round_id)]
    ring_after_commit(session, Bell.PIECE, plan_shards(session, round_id, Kind.MATCH, parts))


def match(session: Session, piece: Piece) -> dict[str, object]:
    """Write down every winning ticket of one shard, of operators that are in the draw."""
    numbers = session.get_one(Draw, piece.round_id).numbers
    if piece.part is None:  # Planned by the release before: all tickets of one operator.
        return {"wins": match_tickets(session, piece.round_id, numbers, [piece.operator_id])}
    operators = [part.operator_id for part in _effective(session, piece.round_id)]
    return {"wins": match_tickets(session, piece.round_id, numbers, operators, Stretch(**piece.part))}


def complete(session: Session, row: Round, now: datetime) -> None:
    """ESCROWED → DRAWN: the winners are complete; what everybody gets is computed and fixed."""
    effective = _effective(session, row.id)
    drawn = session.get_one(Draw, row.id, with_for_update=True)
    counts = win_counts(session, row.id)
    outcome = settle(
        row.parsed_rules,
        [Stake(part.operator_id, part.ticket_count) for part in effective],
        counts,
        balance(session, POOL),
        reserve_for(session, row.id),
    )
    amounts = [outcome.prize_of(tier) for tier in range(6)]
    award(session, row.id, amounts, now + timedelta(days=settings().claim_days))
    won = {operator_id: tiers[0] for operator_id, tiers in sorted(counts.items()) if tiers[0]}
    indices = _winner_indices(session, row.id, effective)
    first = min(indices, key=indices.__getitem__, default=None)

    root = winners_root_in_order(row.id, stream_winners(session, row.id, amounts))
    count_up(session, Operator.rounds_won, list(won))
    count_up(session, Operator.nonces_withheld, _withheld(session, row))

    # All of it at once: the database takes one completion of a draw and refuses any later change.
    drawn.drawn_at = now
    drawn.winner_counts = [sum(tiers[tier] for tiers in counts.values()) for tier in range(6)]
    drawn.winners_root = root
    drawn.jackpot_amount = outcome.terms.P
    drawn.sub_prize_total = outcome.terms.subPaid
    drawn.terms = outcome.terms.as_hashed()
    drawn.releases = {operator_id: str(release.total) for operator_id, release in outcome.releases.items()}
    drawn.winning_operator_id = first
    drawn.winner_index = indices[first] if first else None
    session.flush()

    carry_out(session, row, Trigger.MATCHING_COMPLETE, _news(row, drawn, won, indices, outcome), now)
    pieces = plan(session, row.id, Kind.TABULATE, [part.operator_id for part in effective])
    ring_after_commit(session, Bell.PIECE, pieces)


def _news(row: Round, drawn: Draw, won: dict[str, int], indices: dict[str, int], outcome: Settlement) -> Announcement:
    numbers: dict[str, Any] = drawn.numbers.as_hashed()
    told = {
        "drawSeed": drawn.draw_seed,
        "winnerIndex": drawn.winner_index,
        "winningOperatorId": drawn.winning_operator_id,
        "totalTickets": row.total_tickets,
        **numbers,
    }
    winners = {
        operator_id: {
            "roundId": row.id,
            "operatorId": operator_id,
            "winnerIndex": indices[operator_id],
            "bonusUsdc": count * outcome.bonus_share,
            "payoutUsdc": count * outcome.jackpot_share,
        }
        for operator_id, count in won.items()
    }
    return Announcement(numbers, {"round.drawn": told}, {"operator.won": winners})


def _effective(session: Session, round_id: int) -> list[Participation]:
    return [part for part, _ in participations(session, round_id) if part.escrowed_at and part.excluded_at is None]


def _withheld(session: Session, row: Round) -> list[str]:
    """Operators in the draw that committed to a nonce and did not reveal it."""
    return [
        part.operator_id
        for part, manifest in participations(session, row.id)
        if manifest and manifest.nonce_commit and part.nonce is None and part.excluded_at is None
    ]


def _winner_indices(session: Session, round_id: int, effective: list[Participation]) -> dict[str, int]:
    """Place, from 0, of each operator's first jackpot ticket in effective order: operators by id, tickets by id."""
    first = first_jackpots(session, round_id)
    indices = {}
    before = 0
    for part in effective:
        if ticket_id := first.get(part.operator_id):
            indices[part.operator_id] = before + count_tickets_before(session, round_id, part.operator_id, ticket_id)
        before += part.ticket_count
    return indices
