"""Buying a ticket.

The one rule kept here: a ticket is sold in one transaction in which its player is held, so that what her limits, her
balance and she herself allow is judged one purchase after the other; the insert (its trigger ``sales_open``) makes
whoever closes sales wait for it, so that she has every ticket that was sold.
"""

import secrets
from uuid import uuid4

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from player.models.ledger import balance, player_account, sales_account
from player.models.limits import assert_may_play, assert_within_limits
from player.models.players import lock_player
from player.models.rounds import Round, on_sale
from player.models.tickets import Ticket
from player.models.transactions import move
from protocol.errors import Conflict, Invalid, NotFound
from protocol.prizes import TIERS
from protocol.rules import Six


def buy_ticket(
    session: Session, player_id: int, numbers: Six | None, is_quick_pick: bool, round_id: int | None = None
) -> Ticket:
    """Sell a player one ticket of a round, or of the one whose sales end first.

    ``numbers`` in tier order (jackpot, bonus1 to bonus5), those of the bonuses in range already; None: we choose them.

    :raises Invalid: the jackpot number is beyond the round's range.
    :raises Forbidden: suspended or self-excluded.
    :raises NotFound: no such round.
    :raises Conflict: ``no_open_round``, ``sales_closed``, ``limit_reached`` or ``insufficient_funds``.
    """
    row = lock_player(session, player_id)
    assert_may_play(session, row)
    round_ = _round_on_sale(session, round_id)
    numbers = numbers or quick_pick(round_.odds_range)
    if numbers[0] > round_.odds_range:
        fault = f"Must be greater than or equal to 1 and less than or equal to {round_.odds_range}."
        raise Invalid("the request has fields that cannot be accepted", details={"jackpotNumber": [fault]})
    assert_within_limits(session, row, round_.ticket_price)
    held = balance(session, player_account(player_id))
    if held < round_.ticket_price:
        raise Conflict(
            "the balance does not suffice for a ticket",
            code="insufficient_funds",
            details={"balance": str(held), "ticketPrice": str(round_.ticket_price)},
        )
    ticket = _insert(session, player_id, round_, numbers, is_quick_pick)
    move(
        session,
        player_id,
        "purchase",
        -ticket.price,
        sales_account(round_.id),
        once=f"purchase:{ticket.ticket_id}",
        reference=ticket.ticket_id,
    )
    return ticket


def quick_pick(odds_range: int) -> Six:
    """Six numbers in tier order that nobody can foresee, each of its whole range."""
    jackpot, one, two, three, four, five = (
        1 + secrets.randbelow(highest) for highest in (odds_range, *(tier.range for tier in TIERS))
    )
    return jackpot, one, two, three, four, five


def _round_on_sale(session: Session, round_id: int | None) -> Round:
    if round_id is not None:
        named = session.get(Round, round_id)
        if named is None:
            raise NotFound("no such round")
        return named
    first = on_sale(session)
    if first is None:
        raise Conflict("there is no round on sale; try again when the next one opens", code="no_open_round")
    return first


def _insert(session: Session, player_id: int, round_: Round, numbers: Six, is_quick_pick: bool) -> Ticket:
    round_id = round_.id
    jackpot, bonus1, bonus2, bonus3, bonus4, bonus5 = numbers
    ticket = Ticket(
        ticket_id=f"{round_id}-{uuid4().hex}",
        player_id=player_id,
        round_id=round_id,
        jackpot_number=jackpot,
        bonus1=bonus1,
        bonus2=bonus2,
        bonus3=bonus3,
        bonus4=bonus4,
        bonus5=bonus5,
        is_quick_pick=is_quick_pick,
        price=round_.ticket_price,
        status="active",
    )
    session.add(ticket)
    try:
        session.flush()
    except IntegrityError as refused:
        diagnosis = getattr(refused.orig, "diag", None)
        if getattr(diagnosis, "constraint_name", None) != "sales_open":
            raise
        raise Conflict(f"sales of round {round_id} are over", code="sales_closed") from None
    return ticket
