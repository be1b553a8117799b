"""What a round's tickets won: found at the draw, worth something certain once the round is settled, then reported.

The one rule kept here: a prize is on record before anybody is told of it, without an amount until the coordinator has
settled the round.
"""

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import func, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from player.models.prizes import Prize
from player.models.tickets import Ticket
from protocol.numbers import tiers_won

_AT_ONCE = 5_000
Won = tuple[int, str]
"""A tier, 0 for the jackpot, and the id of a ticket that won in it."""


def matching(session: Session, round_id: int, drawn: Sequence[int]) -> set[Won]:
    """Our own reading of the draw: every ticket of the round that has one of the six drawn numbers at its place."""
    places = (Ticket.jackpot_number, Ticket.bonus1, Ticket.bonus2, Ticket.bonus3, Ticket.bonus4, Ticket.bonus5)
    some = or_(*(place == number for place, number in zip(places, drawn, strict=True)))
    rows = session.execute(select(Ticket.ticket_id, *places).where(Ticket.round_id == round_id, some))
    return {(tier, ticket_id) for ticket_id, *numbers in rows for tier in tiers_won(numbers, drawn)}  # type: ignore[arg-type]


def decide(session: Session, round_id: int, wins: Collection[Won]) -> None:
    """Every ticket of the round is won or lost from now on, and each win is a prize of an amount not known yet."""
    winners = sorted({ticket_id for _, ticket_id in wins})
    known: dict[str, tuple[int, int]] = {}
    for some in _slices(winners):
        mine = Ticket.ticket_id.in_(some)
        won = update(Ticket).where(mine, Ticket.round_id == round_id).values(status="won")
        rows = session.execute(won.returning(Ticket.ticket_id, Ticket.id, Ticket.player_id))
        known.update((ticket_id, (row_id, player_id)) for ticket_id, row_id, player_id in rows)
    session.execute(update(Ticket).where(Ticket.round_id == round_id, Ticket.status == "active").values(status="lost"))
    prizes = [
        {"ticket": known[ticket_id][0], "player_id": known[ticket_id][1], "round_id": round_id, "tier": tier}
        for tier, ticket_id in sorted(wins)
    ]
    if prizes:
        session.execute(insert(Prize), prizes)


def counted(session: Session, round_id: int) -> dict[int, int]:
    """How many prizes of the round there are, by tier; tiers without any are left out."""
    by_tier = select(Prize.tier, func.count()).where(Prize.round_id == round_id).group_by(Prize.tier)
    return dict(session.execute(by_tier).all())


def make_certain(session: Session, round_id: int, each: Mapping[int, int]) -> None:
    """Give every prize of the round its amount: ``each`` is micro-USDC by tier."""
    for tier, amount in each.items():
        session.execute(
            update(Prize)
            .where(Prize.round_id == round_id, Prize.tier == tier, Prize.amount.is_(None))
            # A prize of a round that could not pay is nothing to be claimed.
            .values(amount=amount, status="unclaimed" if amount else "expired")
        )
    sums = select(Prize.ticket, func.sum(Prize.amount).label("total")).where(Prize.round_id == round_id)
    total = sums.group_by(Prize.ticket).subquery()
    session.execute(update(Ticket).where(Ticket.id == total.c.ticket).values(winnings=total.c.total))


def unreported(session: Session, round_id: int, most: int) -> dict[int, Won]:
    """Prizes that players have claimed and the coordinator does not know of, by the prize's id."""
    wanted = (
        select(Prize.id, Prize.tier, Ticket.ticket_id)
        .join(Ticket, Ticket.id == Prize.ticket)
        .where(Prize.round_id == round_id, Prize.status == "claimed", Prize.reported_at.is_(None))
        .order_by(Prize.id)
        .limit(most)
    )
    return {prize_id: (tier, ticket_id) for prize_id, tier, ticket_id in session.execute(wanted)}


def note_reported(session: Session, prize_ids: Collection[int]) -> None:
    """The coordinator knows that these were paid."""
    for some in _slices(sorted(prize_ids)):
        reported = update(Prize).where(Prize.id.in_(some), Prize.reported_at.is_(None))
        session.execute(reported.values(reported_at=func.clock_timestamp()))


def expire(session: Session, round_id: int) -> None:
    """What was not claimed can no longer be; claims that are being made are waited for."""
    session.execute(
        update(Prize).where(Prize.round_id == round_id, Prize.status == "unclaimed").values(status="expired")
    )


def open_prizes(session: Session, round_id: int) -> int:
    """How many prizes of the round are neither expired nor reported."""
    is_open = (Prize.status == "unclaimed") | ((Prize.status == "claimed") & Prize.reported_at.is_(None))
    return session.scalars(select(func.count(Prize.id)).where(Prize.round_id == round_id, is_open)).one()


def _slices(things: Sequence[str] | Sequence[int]) -> list[list[str | int]]:
    return [list(things[place : place + _AT_ONCE]) for place in range(0, len(things), _AT_ONCE)]
