"""The jackpot and its odds as shown (interface sections 2.5 and 4.1)."""

from typing import Any

from marshmallow import Schema, fields
from sqlalchemy.orm import Session

from models.jackpot import jackpot
from models.ledger import POOL, balance
from models.session import database_now
from models.settings import settings
from models.statistics import next_draw
from protocol.odds import Milestone, current_milestone, next_milestone, odds_range, odds_text
from protocol.timestamps import format_timestamp

MICRO = 1_000_000


class JackpotSchema(Schema):
    """The jackpot, micro-USDC. ``nextDrawTime`` and ``nextDrawRoundId`` are null while no round is on."""

    jackpot = fields.String(required=True)
    drawsSinceLastWin = fields.Integer(required=True)
    lastWinRoundId = fields.Integer(required=True, allow_none=True)
    cumulativeTickets = fields.String(required=True)
    currentOddsRange = fields.Integer(required=True)
    nextDrawTime = fields.String(required=True, allow_none=True)
    nextDrawRoundId = fields.Integer(required=True, allow_none=True)
    ticketPrice = fields.Integer(required=True)
    updatedAt = fields.String(required=True)


class JackpotCounterSchema(Schema):
    """The jackpot for a page's counter: amounts in USD with two decimals."""

    jackpot = fields.String(required=True)
    currency = fields.String(required=True)
    drawsSinceLastWin = fields.Integer(required=True)
    nextDrawTime = fields.String(required=True, allow_none=True)
    ticketPrice = fields.String(required=True)
    currentOdds = fields.String(required=True)


class MilestoneSchema(Schema):
    """A step of the odds ladder."""

    cumulativeTickets = fields.String(required=True)
    oddsRange = fields.Integer(required=True)


class NextMilestoneSchema(MilestoneSchema):
    """The step ahead, and how many tickets are left until it is reached."""

    ticketsRemaining = fields.String(required=True)


class OddsSchema(Schema):
    """The odds of the jackpot. ``nextMilestone`` is null on the last step of the ladder."""

    currentOddsRange = fields.Integer(required=True)
    currentOdds = fields.String(required=True)
    cumulativeTickets = fields.String(required=True)
    currentMilestone = fields.Nested(MilestoneSchema, required=True)
    nextMilestone = fields.Nested(NextMilestoneSchema, required=True, allow_none=True)


def jackpot_view(session: Session) -> dict[str, Any]:
    """The jackpot as it is now."""
    lottery, coming = jackpot(session), next_draw(session)
    return {
        "jackpot": str(balance(session, POOL)),
        "drawsSinceLastWin": lottery.draws_since_last_win,
        "lastWinRoundId": lottery.last_win_round_id,
        "cumulativeTickets": str(lottery.cumulative_tickets),
        "currentOddsRange": odds_range(lottery.cumulative_tickets),
        "nextDrawTime": format_timestamp(coming.at) if coming else None,
        "nextDrawRoundId": coming.round_id if coming else None,
        "ticketPrice": coming.ticket_price if coming else settings().ticket_price_usdc,
        "updatedAt": format_timestamp(database_now(session)),
    }


def counter_view(shown: dict[str, Any]) -> dict[str, Any]:
    """The counter that goes with a ``jackpot_view``."""
    return {
        "jackpot": usd(int(shown["jackpot"])),
        "currency": "USD",
        "drawsSinceLastWin": shown["drawsSinceLastWin"],
        "nextDrawTime": shown["nextDrawTime"],
        "ticketPrice": usd(shown["ticketPrice"]),
        "currentOdds": odds_text(shown["currentOddsRange"]),
    }


def odds_view(cumulative: int) -> dict[str, Any]:
    """The odds after so many tickets in settled rounds."""
    here, ahead = current_milestone(cumulative), next_milestone(cumulative)
    return {
        "currentOddsRange": here.odds_range,
        "currentOdds": odds_text(here.odds_range),
        "cumulativeTickets": str(cumulative),
        "currentMilestone": _milestone(here),
        "nextMilestone": _milestone(ahead) | {"ticketsRemaining": str(ahead.cumulative_tickets - cumulative)}
        if ahead
        else None,
    }


def usd(micro: int) -> str:
    """micro-USDC as USD with two decimals. Fractions of a cent are cut off: we never show more than there is."""
    cents = micro * 100 // MICRO
    return f"{cents // 100}.{cents % 100:02d}"


def _milestone(step: Milestone) -> dict[str, Any]:
    return {"cumulativeTickets": str(step.cumulative_tickets), "oddsRange": step.odds_range}
