"""What becomes of the money of a round: given back to players if it failed, the house's when it is settled."""

from __future__ import annotations

from sqlalchemy import text

from player.models.books import books
from player.models.ledger import HOUSE, balance, player_account, sales_account, transfer
from player.models.round_money import refund_round, refund_ticket, settle_sales
from player.models.session import transaction
from player.models.tickets import Ticket
from player.models.transactions import move
from tests.player.factories import TICKET_PRICE, a_player, an_open_round, close_sales


def sold(player_id: int, ticket_id: str, round_id: int = 7) -> None:
    numbers = {"jackpot_number": 1, **{f"bonus{place}": 1 for place in range(1, 6)}}
    with transaction() as session:
        session.add(
            Ticket(
                ticket_id=ticket_id,
                player_id=player_id,
                round_id=round_id,
                is_quick_pick=False,
                price=TICKET_PRICE,
                **numbers,
            )
        )
        session.flush()
        once = f"purchase:{ticket_id}"
        assert move(session, player_id, "purchase", -TICKET_PRICE, sales_account(round_id), once=once)


def test_a_failed_round_gives_every_price_back_once(node: str) -> None:
    an_open_round()
    ana, eva = a_player(balance=5 * TICKET_PRICE), a_player(balance=TICKET_PRICE)
    for number in range(3):
        sold(ana.id, f"7-a{number}")
    sold(eva.id, "7-e")
    close_sales()
    with transaction() as session:
        assert refund_ticket(session, "7-a1")
        assert not refund_ticket(session, "7-a1")
        session.execute(text("UPDATE rounds SET stage = 'failed'"))
        assert refund_round(session, 7) == 3
        assert refund_round(session, 7) == 0
    with transaction() as session:
        assert balance(session, player_account(ana.id)) == 5 * TICKET_PRICE
        assert balance(session, player_account(eva.id)) == TICKET_PRICE
        assert books(session).faults == ()


def test_a_settled_round_belongs_to_the_house(node: str) -> None:
    an_open_round()
    ana = a_player(balance=2 * TICKET_PRICE)
    sold(ana.id, "7-a")
    sold(ana.id, "7-b")
    with transaction() as session:
        assert books(session).faults == ()
        session.execute(text("UPDATE rounds SET stage = 'payable'"))
        assert settle_sales(session, 7) == 2 * TICKET_PRICE
        assert settle_sales(session, 7) == 0
        found = books(session)
    assert (found.world, found.players, found.sales, found.house) == (-2 * TICKET_PRICE, 0, 0, 2 * TICKET_PRICE)
    assert found.balanced


def test_the_books_name_what_does_not_agree(node: str) -> None:
    an_open_round()
    ana = a_player(balance=TICKET_PRICE)
    with transaction() as session:
        transfer(session, "unexplained", HOUSE, player_account(ana.id), 5)
        transfer(session, "stray", HOUSE, "withdrawals", 7)
        transfer(session, "late", HOUSE, sales_account(7), 9)
        session.execute(text("UPDATE accounts SET balance = balance + 1 WHERE id = 'world'"))
        found = books(session)
    assert not found.balanced
    assert found.faults == (
        "all accounts together hold 1, not 0",
        "balance of world is not the sum of its transfers: -3000000 and -2999999",
        f"balance of player:{ana.id} is not the sum of the player's transactions: 3000000 and 3000005",
        "what sales:7 holds is not what its tickets cost: 0 and 9",
        "what withdrawals holds is not what is on its way to players: 0 and 7",
    )
