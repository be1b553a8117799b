"""What becomes of the money that a round's tickets were sold for: ours when it is settled, the players' if it failed.

The one rule kept here: a ticket's price is given back once, in the transaction that says that the ticket is refunded.
"""

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from player.models.ledger import HOUSE, balance, player_account, sales_account, transfer
from player.models.tickets import Ticket
from player.models.transactions import Transaction


def refund_round(session: Session, round_id: int) -> int:
    """Give every player back what her tickets of the round cost; how many tickets that were. The round must be held."""
    wanted = select(Ticket.id, Ticket.ticket_id, Ticket.player_id, Ticket.price)
    tickets = session.execute(
        wanted.where(Ticket.round_id == round_id, Ticket.status != "refunded").order_by(Ticket.player_id, Ticket.id)
    ).all()
    for _, ticket_id, player_id, price in tickets:
        transfer(session, f"refund:{ticket_id}", sales_account(round_id), player_account(player_id), price)
        session.add(Transaction(player_id=player_id, type="refund", amount=price, reference=ticket_id))
    session.execute(update(Ticket).where(Ticket.round_id == round_id).values(status="refunded"))
    return len(tickets)


def settle_sales(session: Session, round_id: int) -> int:
    """The round is settled: what its tickets were sold for is the house's; how much that was, micro-USDC."""
    amount = balance(session, sales_account(round_id))
    if amount:
        transfer(session, f"settled:{round_id}", sales_account(round_id), HOUSE, amount)
    return amount
