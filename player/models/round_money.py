"""What becomes of the money that a round's tickets were sold for: ours when it is settled, the players' if it failed.

The one rule kept here: a ticket's price is given back once, in the transaction that says that the ticket is refunded.
"""

from typing import Any

from sqlalchemy import insert, update
from sqlalchemy.orm import Session

from player.models.ledger import HOUSE, Transfer, balance, player_account, sales_account, transfer
from player.models.tickets import Ticket
from player.models.transactions import Transaction


def refund_round(session: Session, round_id: int) -> int:
    """Give every player back what her tickets of the round cost; how many tickets that were. The round must be held,
    and its sales closed.

    Tickets that were refunded before are left alone, so it may be done again.
    """
    return _refund(session, Ticket.round_id == round_id)


def refund_ticket(session: Session, ticket_id: str) -> bool:
    """Give back what one ticket cost; False when that was done before. Its round must be held.

    Only before the round is settled: after that the money is not the round's any more.
    """
    return _refund(session, Ticket.ticket_id == ticket_id) == 1


def settle_sales(session: Session, round_id: int) -> int:
    """The round is settled: what its tickets were sold for is the house's; how much that was, micro-USDC. The round
    must be held.
    """
    amount = balance(session, sales_account(round_id))
    if amount:
        transfer(session, f"settled:{round_id}", sales_account(round_id), HOUSE, amount)
    return amount


def _refund(session: Session, which: Any) -> int:
    refunded = (
        update(Ticket)
        .where(which, Ticket.status != "refunded")
        .values(status="refunded")
        .returning(Ticket.ticket_id, Ticket.player_id, Ticket.round_id, Ticket.price)
    )
    # By account, so that two rounds refunded at once never wait for each other crosswise.
    rows = sorted(session.execute(refunded).all(), key=lambda row: (player_account(row.player_id), row.ticket_id))
    if rows:
        session.execute(insert(Transfer), [_given_back(row) for row in rows])
        session.execute(insert(Transaction), [_line_of(row) for row in rows])
    return len(rows)


def _given_back(ticket: Any) -> dict[str, Any]:
    return {
        "reference": f"refund:{ticket.ticket_id}",
        "source": sales_account(ticket.round_id),
        "target": player_account(ticket.player_id),
        "amount": ticket.price,
    }


def _line_of(ticket: Any) -> dict[str, Any]:
    return {
        "player_id": ticket.player_id,
        "type": "refund",
        "amount": ticket.price,
        "status": "completed",
        "reference": ticket.ticket_id,
    }
