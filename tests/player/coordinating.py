"""A real coordinator beside the node under test: its own database, its own application, reached over HTTP.

The one rule kept here: the node learns of it over the wire and in no other way; only the test moves its clock and does
its work.
"""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

from sqlalchemy import func, text, update
from werkzeug.serving import WSGIRequestHandler, make_server

from player.models.ledger import player_account, sales_account, transfer
from player.models.players import Player
from player.models.rounds import Round
from player.models.session import transaction
from player.models.tickets import Ticket

PRICE = 3_000_000
FUNDS = 10**9


class _Quiet(WSGIRequestHandler):
    """Says nothing of requests that were answered."""

    protocol_version = "HTTP/1.1"  # connections are kept, as by any server that this would be

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        pass


@dataclass(frozen=True)
class Side:
    """The coordinator's side of a test."""

    url: str
    operator_id: str
    api_key: str

    def open_round(self, *others: str) -> int:
        """Open a round that invites us and these operators; it seals in an hour."""
        from tests.factories import a_round

        return a_round([self.operator_id, *others])

    def take_to(self, round_id: int, state: str) -> None:
        """Let the round's deadlines pass as far as to this state, and the coordinator do its work."""
        from protocol.lifecycle import State
        from tests.factories import take_to

        take_to(round_id, State(state))

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Read from the coordinator's tables."""
        from tests.factories import rows

        return rows(query)


@contextlib.contextmanager
def coordinator_on_the_wire() -> Iterator[str]:
    """The address of the coordinator's application, as it is in this process."""
    from app import create_app

    server = make_server("127.0.0.1", 0, create_app(), threaded=True, request_handler=_Quiet)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def an_operator_with_a_key() -> tuple[str, str]:
    """A funded operator of the coordinator, and its API key."""
    from models.credentials import issue_api_key
    from models.session import transaction as at_the_coordinator
    from tests.factories import an_operator

    operator_id = an_operator("us", 10**12)
    with at_the_coordinator() as session:
        return operator_id, issue_api_key(session, operator_id)


def some_players(count: int) -> list[int]:
    """So many players with money."""
    with transaction() as session:
        players = [
            Player(email=f"{uuid4().hex}@example.com", password_hash="x", display_name="P") for _ in range(count)
        ]
        session.add_all(players)
        session.flush()
        for player in players:
            transfer(session, f"deposit:{player.id}", "world", player_account(player.id), FUNDS)
        return [player.id for player in players]


def a_ticket(ticket_id: str, round_id: int, player_id: int, numbers: tuple[int, ...]) -> Ticket:
    """A ticket with these six numbers."""
    jackpot, *bonuses = numbers
    bonus = {f"bonus{place}": number for place, number in enumerate(bonuses, 1)}
    known = {"ticket_id": ticket_id, "round_id": round_id, "player_id": player_id, "jackpot_number": jackpot}
    return Ticket(**known, **bonus, is_quick_pick=True, price=PRICE)


def sell(round_id: int, player_id: int, numbers: tuple[int, ...]) -> str:
    """Sell a ticket as a purchase does; its id."""
    ticket_id = f"{round_id}-{uuid4().hex}"
    with transaction() as session:
        session.add(a_ticket(ticket_id, round_id, player_id, numbers))
        session.flush()
        transfer(session, f"purchase:{ticket_id}", player_account(player_id), sales_account(round_id), PRICE)
    return ticket_id


def sell_some(round_id: int, count: int, highest: tuple[int, ...] = (3, 4, 4, 3, 3, 2), seed: int = 1) -> list[str]:
    """Sell so many tickets to three players, with numbers so low that every tier of generous rules has winners."""
    pick = random.Random(seed).randint
    players = some_players(3)
    return [sell(round_id, players[place % 3], tuple(pick(1, top) for top in highest)) for place in range(count)]


def end_sales(round_id: int) -> None:
    """Let the node's own sales be over."""
    with transaction() as session:
        session.execute(
            update(Round)
            .where(Round.id == round_id)
            .values(sales_close_at=func.clock_timestamp() - timedelta(seconds=1), due_at=func.clock_timestamp())
        )


def look(round_id: int) -> str:
    """Let the node look at the round until there is nothing to do at once; its stage."""
    from player.tasks.rounds import look_at

    make_due(round_id)
    while look_at(round_id):
        pass
    return the_round(round_id).stage


def make_due(round_id: int) -> None:
    """Let the round be due, whatever lease is on it."""
    with transaction() as session:
        session.execute(text(f"UPDATE rounds SET due_at = now() WHERE id = {round_id} AND due_at IS NOT NULL"))


def learn() -> None:
    """Let the node ask what rounds there are."""
    from player.tasks.chores import do_chore

    with transaction() as session:
        session.execute(text("UPDATE chores SET due_at = now()"))
    do_chore("poll")


def the_round(round_id: int) -> Round:
    """The round as the node knows it now."""
    with transaction() as session:
        return session.get_one(Round, round_id)


def rows(query: str) -> list[tuple[Any, ...]]:
    """Read from the node's tables."""
    with transaction() as session:
        return [tuple(row) for row in session.execute(text(query))]


def claim_all(round_id: int) -> int:
    """Every prize of the round is claimed, as a claim does; how many there were."""
    with transaction() as session:
        prizes = session.execute(
            text(f"SELECT id, player_id, amount FROM prizes WHERE round_id = {round_id} AND status = 'unclaimed'")
        ).all()
        for prize_id, player_id, amount in prizes:
            transfer(session, f"prize:{prize_id}", "house", player_account(player_id), amount)
        session.execute(
            text("UPDATE prizes SET status = 'claimed', claimed_at = now() WHERE id = ANY(:ids)"),
            {"ids": [prize_id for prize_id, _, _ in prizes]},
        )
    return len(prizes)
