"""``selling`` and the first half of ``closed``: tickets go to the coordinator, batch by batch.

The one rule kept here: a batch is on record here before it is sent, and sent until the coordinator has confirmed it;
that it arrives twice changes nothing.
"""

from datetime import datetime, timedelta

from player.coordinator import Conflict, CoordinatorError
from player.models.looks import close_sales
from player.models.session import transaction
from player.models.submissions import (
    gather,
    has_unsent,
    note_attempt,
    note_outcome,
    tickets_of_batch,
    unconfirmed,
)
from player.settings import settings
from player.tasks.looking import Look


def sell(look: Look) -> datetime | None:
    """``selling``: send what was sold since the last look; close sales when their time is over."""
    row = look.row
    if row.state != "OPEN" and look.own.state != "OPEN":
        if look.lost():
            return None
        row.sales_close_at = look.now
    if row.sales_close_at <= look.now:
        with transaction() as session:
            close_sales(session, row.id)
        return look.now
    with transaction() as session:
        waiting = has_unsent(session, row.id)
    if waiting:
        try:
            send_all(look)
        except Conflict as refusal:
            if refusal.code != "sales_ended" or look.ask_again().state == "OPEN":
                raise
            return look.now  # our clocks differ: the next look finds the state that we were told
    return min(look.now + timedelta(seconds=settings().submit_every_seconds), row.sales_close_at)


def send_all(look: Look) -> None:
    """Put every ticket that is in no batch into one, and send all batches that are not confirmed.

    :raises CoordinatorError: one was not taken; the same batch goes again at the next look.
    """
    while True:
        with transaction() as session:
            if gather(session, look.row.id) is None:
                break
    with transaction() as session:
        batches = unconfirmed(session, look.row.id)
    for batch in batches:
        with transaction() as session:
            note_attempt(session, batch)
            tickets = tickets_of_batch(session, batch)
        try:
            look.coordinator.submit_tickets(look.row.id, tickets)
        except CoordinatorError as problem:
            with transaction() as session:
                note_outcome(session, batch, str(problem))
            raise
        with transaction() as session:
            note_outcome(session, batch, None)
