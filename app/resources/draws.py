"""Draws and winners as shown (interface sections 2.3 and 2.4)."""

from typing import Any

from marshmallow import Schema, fields
from marshmallow.validate import Regexp

from app.fields import LARGEST_SAFE, Micro, QueryWhole, Shown, Text, Whole, hex_hash, identifier
from app.resources.events import NumbersSchema
from models.draws import Draw, WinningTicket
from protocol.timestamps import format_timestamp

LARGEST_WINNER_PAGE = 10_000


def draw_id_field(**kwargs: Any) -> Text:
    """A field for a draw's id."""
    return Text(validate=[Regexp(r"^draw_[1-9][0-9]*\Z")], **kwargs)


class DrawSummarySchema(NumbersSchema):
    """A draw without its seed."""

    drawId = draw_id_field(required=True)
    roundId = Whole(lowest=1, required=True)
    jackpotWon = fields.Boolean(required=True)
    jackpotWinnerCount = Whole(required=True)
    jackpotAmount = Micro(required=True)
    createdAt = Shown(required=True)


class DrawSchema(DrawSummarySchema):
    """A draw."""

    drawSeed = hex_hash(required=True)


class WinnerSchema(Schema):
    """A winning ticket of a sub-prize tier."""

    operatorId = identifier(required=True)
    ticketId = identifier(required=True)
    prizeAmount = Micro(required=True)
    claimed = fields.Boolean(required=True)


class TierSchema(Schema):
    """The winners of one tier; ``count`` is of all of them, whatever the page."""

    tier = Whole(lowest=1, highest=5, required=True)
    winners = fields.List(fields.Nested(WinnerSchema), required=True)
    count = Whole(required=True)


class WinnersSchema(Schema):
    """Who won in a draw."""

    drawId = draw_id_field(required=True)
    roundId = Whole(lowest=1, required=True)
    jackpotWon = fields.Boolean(required=True)
    jackpotWinnerCount = Whole(required=True)
    jackpotAmount = Micro(required=True)
    subPrizeTiers = fields.List(fields.Nested(TierSchema), required=True)
    totalSubPrizeWinners = Whole(required=True)


class BreakdownWinnerSchema(WinnerSchema):
    """A winning ticket in the sub-prize breakdown; unclaimed by ``claimDeadline``, its prize falls back."""

    claimDeadline = Shown(required=True)


class BreakdownTierSchema(Schema):
    """One tier: how many won, what they are paid together (micro-USDC), and a page of them."""

    tier = Whole(lowest=1, highest=5, required=True)
    winnerCount = Whole(required=True)
    totalPayout = Micro(required=True)
    winners = fields.List(fields.Nested(BreakdownWinnerSchema), required=True)


class SubPrizesSchema(Schema):
    """The sub-prizes of a draw."""

    drawId = draw_id_field(required=True)
    tiers = fields.List(fields.Nested(BreakdownTierSchema), required=True)
    totalWinners = Whole(required=True)


class HistorySchema(Schema):
    """A page of draws, newest first."""

    draws = fields.List(fields.Nested(DrawSummarySchema), required=True)
    count = Whole(required=True)
    limit = Whole(lowest=1, required=True)
    offset = Whole(required=True)


class WinnersQuerySchema(Schema):
    """Which winners: of one tier or of all, ``limit`` a tier, from ``offset`` on."""

    tier = QueryWhole(lowest=1, highest=5, load_default=None)
    limit = QueryWhole(lowest=1, highest=LARGEST_WINNER_PAGE, load_default=1_000)
    offset = QueryWhole(lowest=0, highest=LARGEST_SAFE, load_default=0)


def draw_id(round_id: int) -> str:
    """The published id of a round's draw."""
    return f"draw_{round_id}"


def draw_summary(draw: Draw) -> dict[str, Any]:
    """A draw that is public, without its seed."""
    jackpots = draw.winner_counts[0] if draw.winner_counts else 0
    return {
        "drawId": draw_id(draw.round_id),
        "roundId": draw.round_id,
        **draw.numbers.as_hashed(),
        "jackpotWon": jackpots > 0,
        "jackpotWinnerCount": jackpots,
        "jackpotAmount": str(draw.jackpot_amount),
        "createdAt": format_timestamp(draw.created_at),
    }


def draw_detail(draw: Draw) -> dict[str, Any]:
    """A draw that is public."""
    return {**draw_summary(draw), "drawSeed": draw.draw_seed}


def winner(row: WinningTicket) -> dict[str, Any]:
    """A winning ticket."""
    return {
        "operatorId": row.operator_id,
        "ticketId": row.ticket_id,
        "prizeAmount": str(row.prize_usdc),
        "claimed": row.claimed_in_time,
    }


def breakdown_winner(row: WinningTicket) -> dict[str, Any]:
    """A winning ticket in the sub-prize breakdown."""
    assert row.claim_deadline is not None  # written when the round becomes DRAWN, before anybody sees it
    return {**winner(row), "claimDeadline": format_timestamp(row.claim_deadline)}
