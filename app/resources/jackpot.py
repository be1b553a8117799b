"""The jackpot and its odds as shown (interface sections 2.5 and 4.1)."""

from typing import Any

from marshmallow import Schema, fields
from marshmallow.validate import Regexp
from sqlalchemy.orm import Session

from app.fields import LARGEST_ODDS_RANGE, Count, Micro, Shown, Usd, Whole, one_of
from models.jackpot import jackpot
from models.ledger import POOL, balance, last_moved
from models.settings import settings
from models.statistics import next_draw
from protocol.odds import Milestone, current_milestone, next_milestone, odds_range, odds_text
from protocol.timestamps import format_timestamp

MICRO = 1_000_000


def odds_in_words(**kwargs: Any) -> fields.String:
    """A field for odds as people read them: 1 in 10,000,000."""
    return fields.String(validate=Regexp(r"^1 in [0-9]{1,3}(,[0-9]{3})*\Z"), **kwargs)


class JackpotSchema(Schema):
    """The jackpot, micro-USDC, as it is since ``updatedAt``. ``nextDrawTime`` and ``nextDrawRoundId`` are null while no
    round is on.
    """

    jackpot = Micro(required=True)
    drawsSinceLastWin = Whole(required=True)
    lastWinRoundId = Whole(lowest=1, required=True, allow_none=True)
    cumulativeTickets = Count(required=True)
    currentOddsRange = Whole(lowest=1, highest=LARGEST_ODDS_RANGE, required=True)
    nextDrawTime = Shown(required=True, allow_none=True)
    nextDrawRoundId = Whole(lowest=1, required=True, allow_none=True)
    ticketPrice = Whole(lowest=1, required=True)
    updatedAt = Shown(required=True)


class JackpotCounterSchema(Schema):
    """The jackpot for a page's counter: amounts in USD with two decimals."""

    jackpot = Usd(required=True)
    currency = one_of(["USD"], required=True)
    drawsSinceLastWin = Whole(required=True)
    nextDrawTime = Shown(required=True, allow_none=True)
    ticketPrice = Usd(required=True)
    currentOdds = odds_in_words(required=True)


class MilestoneSchema(Schema):
    """A step of the odds ladder."""

    cumulativeTickets = Count(required=True)
    oddsRange = Whole(lowest=1, highest=LARGEST_ODDS_RANGE, required=True)


class NextMilestoneSchema(MilestoneSchema):
    """The step ahead, and how many tickets are left until it is reached."""

    ticketsRemaining = Count(required=True)


class OddsSchema(Schema):
    """The odds of the jackpot. ``nextMilestone`` is null on the last step of the ladder."""

    currentOddsRange = Whole(lowest=1, highest=LARGEST_ODDS_RANGE, required=True)
    currentOdds = odds_in_words(required=True)
    cumulativeTickets = Count(required=True)
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
        "updatedAt": format_timestamp(last_moved(session, POOL) or lottery.launched_at),
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
