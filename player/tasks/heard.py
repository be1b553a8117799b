"""Webhooks that were received: each calls somebody to look, and nothing more.

The one rule kept here: a webhook is a bell. What happened is read from the coordinator, so a forged, old or reordered
one could do no more than make us look.
"""

import dramatiq
from sqlalchemy import func, select

from player.models.chores import Kind
from player.models.looks import wake
from player.models.session import transaction
from player.models.webhooks import Webhook
from player.tasks.broker import QUEUE, broker
from player.tasks.chores import call_for


@dramatiq.actor(broker=broker, queue_name=QUEUE)
def handle_webhook(delivery_id: str) -> None:
    """Call a worker to what a delivery is about: one transaction, since nobody outside has to be asked."""
    with transaction() as session:
        waiting = select(Webhook).where(Webhook.delivery_id == delivery_id, Webhook.due_at.is_not(None))
        row = session.scalars(waiting.with_for_update(skip_locked=True)).first()
        if row is None:
            return
        if row.event == "operator.heartbeat_missed":
            call_for(session, Kind.HEARTBEAT)
        elif row.round_id is not None and not wake(session, row.round_id):
            call_for(session, Kind.POLL)
        row.handled_at, row.due_at = func.clock_timestamp(), None
