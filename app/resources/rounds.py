"""Rounds as shown: list view, detail view, log (interface sections 2.1 and 2.2)."""

from collections.abc import Iterable, Sequence
from typing import Any

from marshmallow import Schema, fields
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.fields import LARGEST_ODDS_RANGE, Micro, OneKindOf, Shown, Whole, hex_hash, identifier, round_state
from app.resources.events import ROUND_EVENTS
from models.draws import Draw
from models.participation import Manifest, Participation
from models.rounds import Round, RoundEvent
from protocol.lifecycle import DRAWN_STATES
from protocol.timestamps import format_timestamp


class RoundSummarySchema(Schema):
    """A round in a list. Amounts are micro-USDC; strings not known yet are null."""

    id = Whole(lowest=1, required=True)
    state = round_state()
    ticketPriceUsdc = Whole(lowest=1, required=True)
    oddsRange = Whole(lowest=1, highest=LARGEST_ODDS_RANGE, required=True)
    totalTickets = Whole(required=True)
    operatorCount = Whole(required=True)
    escrowedOperatorCount = Whole(required=True)
    excludedOperatorCount = Whole(required=True)
    jackpotWon = fields.Boolean(required=True)
    jackpotWinnerCount = Whole(required=True)
    jackpotAmount = Micro(required=True, allow_none=True)
    subPrizeTotalUsdc = Micro(required=True, allow_none=True)
    totalDeposited = Micro(required=True)
    createdAt = Shown(required=True)
    scheduledDrawTime = Shown(required=True)


class RoundListSchema(Schema):
    """A page of rounds, newest first."""

    rounds = fields.List(fields.Nested(RoundSummarySchema), required=True)
    count = Whole(required=True)


class RoundSchema(RoundSummarySchema):
    """A round in full."""

    operatorIds = fields.List(identifier(), required=True)
    escrowedOperatorIds = fields.List(identifier(), required=True)
    excludedOperatorIds = fields.List(identifier(), required=True)
    fullManifestHash = hex_hash(required=True, allow_none=True)
    effectiveManifestHash = hex_hash(required=True, allow_none=True)
    drawSeed = hex_hash(required=True, allow_none=True)
    winnerIndex = Whole(required=True, allow_none=True)
    winningOperatorId = identifier(required=True, allow_none=True)
    jackpotNumber = Whole(lowest=1, highest=LARGEST_ODDS_RANGE, required=True, allow_none=True)
    bonus1 = Whole(lowest=1, highest=1_000_000, required=True, allow_none=True)
    bonus2 = Whole(lowest=1, highest=100_000, required=True, allow_none=True)
    bonus3 = Whole(lowest=1, highest=10_000, required=True, allow_none=True)
    bonus4 = Whole(lowest=1, highest=1_000, required=True, allow_none=True)
    bonus5 = Whole(lowest=1, highest=100, required=True, allow_none=True)
    previousRoundHash = hex_hash(required=True, allow_none=True)
    chainedAnchorHash = hex_hash(required=True, allow_none=True)
    settlementHash = hex_hash(required=True, allow_none=True)
    btcSettlementTxHash = fields.String(required=True, allow_none=True)
    seedCommit = hex_hash(required=True)
    rulesHash = hex_hash(required=True)
    worstCaseUsdc = Micro(required=True, allow_none=True)
    availableForPrizesUsdc = Micro(required=True, allow_none=True)
    failureReason = fields.String(required=True, allow_none=True)


class RoundEventListSchema(Schema):
    """The log of a round, oldest first."""

    events = fields.List(OneKindOf(*ROUND_EVENTS), required=True)
    count = Whole(required=True)


def list_rounds(session: Session, limit: int, offset: int) -> list[dict[str, Any]]:
    """A page of rounds, newest first: two queries whatever its size."""
    rows = session.execute(
        select(Round, Draw)
        .outerjoin(Draw, Draw.round_id == Round.id)
        .order_by(Round.id.desc())
        .limit(limit)
        .offset(offset)
    ).all()
    selling = tickets_on_record(session, [row.id for row, _ in rows if row.total_tickets is None])
    return [summary(row, draw, selling.get(row.id, 0)) for row, draw in rows]


def tickets_on_record(session: Session, round_ids: Sequence[int]) -> dict[int, int]:
    """Tickets submitted so far to rounds that are not sealed yet."""
    if not round_ids:
        return {}
    rows = session.execute(
        select(Participation.round_id, func.sum(Participation.ticket_count))
        .where(Participation.round_id.in_(round_ids))
        .group_by(Participation.round_id)
    )
    return {round_id: int(count) for round_id, count in rows}


def shown_draw(row: Round, draw: Draw | None) -> Draw | None:
    """The draw as far as it is public: nothing of it before the round is DRAWN."""
    return draw if row.state in DRAWN_STATES else None


def text(amount: int | None) -> str | None:
    """An amount of micro-USDC as the API shows large ones."""
    return None if amount is None else str(amount)


def summary(row: Round, draw: Draw | None, on_record: int) -> dict[str, Any]:
    """The list view of a round; ``on_record`` counts its tickets while they are not sealed yet."""
    drawn, rules = shown_draw(row, draw), row.parsed_rules
    jackpots = drawn.winner_counts[0] if drawn and drawn.winner_counts else 0
    return {
        "id": row.id,
        "state": row.state.value,
        "ticketPriceUsdc": rules.ticket_price,
        "oddsRange": rules.odds_range,
        "totalTickets": on_record if row.total_tickets is None else row.total_tickets,
        "operatorCount": row.operator_count,
        "escrowedOperatorCount": row.escrowed_operator_count,
        "excludedOperatorCount": row.excluded_operator_count,
        "jackpotWon": jackpots > 0,
        "jackpotWinnerCount": jackpots,
        "jackpotAmount": text(drawn.jackpot_amount) if drawn else None,
        "subPrizeTotalUsdc": text(drawn.sub_prize_total) if drawn else None,
        "totalDeposited": str(row.total_deposited),
        "createdAt": format_timestamp(row.created_at),
        "scheduledDrawTime": format_timestamp(row.scheduled_draw_time),
    }


def detail(row: Round, draw: Draw | None, everybody: Iterable[tuple[Participation, Manifest | None]]) -> dict[str, Any]:
    """The detail view of a round."""
    parts = [part for part, _ in everybody]
    drawn = shown_draw(row, draw)
    numbers = (
        drawn.numbers.as_hashed()
        if drawn
        else dict.fromkeys(("jackpotNumber", "bonus1", "bonus2", "bonus3", "bonus4", "bonus5"))
    )
    return {
        **summary(row, draw, sum(part.ticket_count for part in parts)),
        "operatorIds": [part.operator_id for part in parts],
        "escrowedOperatorIds": [part.operator_id for part in parts if part.escrowed_at],
        "excludedOperatorIds": [part.operator_id for part in parts if part.excluded_at],
        "fullManifestHash": row.full_manifest_hash,
        "effectiveManifestHash": row.effective_manifest_hash,
        "drawSeed": drawn.draw_seed if drawn else None,
        "winnerIndex": drawn.winner_index if drawn else None,
        "winningOperatorId": drawn.winning_operator_id if drawn else None,
        **numbers,
        "previousRoundHash": row.previous_round_hash,
        "chainedAnchorHash": row.chained_anchor_hash,
        "settlementHash": row.settlement_hash,
        "btcSettlementTxHash": None,
        "seedCommit": row.seed_commit,
        "rulesHash": row.rules_hash,
        "worstCaseUsdc": text(row.worst_case_usdc),
        "availableForPrizesUsdc": text(row.coverage_usdc),
        "failureReason": row.failure_reason,
    }


def event(entry: RoundEvent) -> dict[str, Any]:
    """An entry of the log."""
    return {
        "type": entry.type,
        "roundId": entry.round_id,
        "timestamp": format_timestamp(entry.created_at),
        "data": entry.data,
    }
