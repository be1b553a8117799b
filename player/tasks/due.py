"""Finding rows that are due and calling workers to them; taking such a row to work on it.

The one rule kept here: whoever works on a row has pushed its ``due_at`` ahead by the length of a lease first, in a
transaction of its own. So no session is open while the coordinator, a payment provider or a mail server is asked, and
a worker that dies is followed by another when the lease is over.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from sqlalchemy import func, select, update

from player.models.chores import Chore
from player.models.mails import Mail
from player.models.payments import Payment
from player.models.rounds import Round
from player.models.session import transaction
from player.models.webhooks import Webhook
from player.settings import settings
from player.tasks.broker import OUTSIDE, QUEUE, ring, unheard

_Row = TypeVar("_Row", Round, Webhook, Chore, Payment, Mail)
DueTable = type[Round] | type[Webhook] | type[Chore] | type[Payment] | type[Mail]


@dataclass(frozen=True)
class Source:
    """A table of due rows, the actor that is called to them, and how long it may take for one, seconds.

    ``for_the_seal``: the work may be what a round needs before it is sealed.
    """

    table: DueTable
    actor: str
    longest_seconds: float
    for_the_seal: bool = False
    queue: str = QUEUE

    @property
    def lease_seconds(self) -> float:
        """How long a row is its worker's. Whoever follows a worker that died must still come in time for the manifest,
        even after a second death. Two at once do no harm: what they send counts once.
        """
        in_time = max(1.0, settings().sales_lead_seconds / 4)
        return min(self.longest_seconds, in_time) if self.for_the_seal else self.longest_seconds


SOURCES = (
    Source(Round, "advance_round", 60.0, for_the_seal=True),
    Source(Webhook, "handle_webhook", 30.0),
    Source(Chore, "do_chore", 60.0, for_the_seal=True),
    Source(Payment, "tell_provider", 60.0, queue=OUTSIDE),
    Source(Mail, "send_mail", 60.0, queue=OUTSIDE),
)
BATCH = 200
"""Rows of one table called for in one tick at the most."""
MOST_UNHEARD = 1_000
"""Calls of one queue that may wait. While no worker hears them more would help nobody: they would fill Redis, and the
first worker that comes back would go through hours of them before it heard of what is due then."""


def ring_due() -> int:
    """Call a worker to every due row; returns how many calls were made.

    A row is called for at each tick until somebody takes it; a second call finds it taken and does nothing.

    :raises redis.exceptions.RedisError: nobody can be called.
    """
    rung = 0
    for source in SOURCES:
        if unheard(source.queue) >= MOST_UNHEARD:
            continue
        (key,) = source.table.__table__.primary_key
        with transaction() as session:
            wanted = select(key).where(source.table.due_at <= func.clock_timestamp()).order_by(source.table.due_at)
            ids = list(session.scalars(wanted.limit(BATCH)))
        rung += sum(ring(source.queue, source.actor, str(row_id)) for row_id in ids)
    return rung


def take(table: type[_Row], row_id: Any) -> _Row | None:
    """A due row, whose ``due_at`` is now the end of our lease; None when it is not due, or somebody else's."""
    (lease,) = (source.lease_seconds for source in SOURCES if source.table is table)
    (key,) = table.__table__.primary_key
    with transaction() as session:
        mine = update(table).where(key == row_id, table.due_at <= func.clock_timestamp())
        return session.scalars(
            mine.values(due_at=func.clock_timestamp() + timedelta(seconds=lease)).returning(table)
        ).first()


def put_back(row: Round | Webhook | Chore | Payment | Mail, due_at: datetime | None) -> None:
    """Give a row that was taken back until ``due_at``. If it was called for meanwhile it stays due: what we saw may be
    old by now.
    """
    table = type(row)
    (key,) = table.__table__.primary_key
    with transaction() as session:
        still_ours = update(table).where(key == getattr(row, key.name), table.due_at == row.due_at)
        session.execute(still_ours.values(due_at=due_at))
