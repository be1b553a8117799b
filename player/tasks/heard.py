"""Webhooks that were received: each calls somebody to look, and nothing more.

The one rule kept here: a webhook is a bell. What happened is read from the coordinator, so a forged, old or reordered
one could do no more than make us look.
"""

import dramatiq
from sqlalchemy import func, update

from player.models.chores import Kind
from player.models.looks import wake
from player.models.session import transaction
from player.models.webhooks import Webhook
from player.tasks.broker import QUEUE, broker
from player.tasks.chores import call_for
from player.tasks.due import put_back, take


@dramatiq.actor(broker=broker, queue_name=QUEUE)
def handle_webhook(delivery_id: str) -> None:
    """Call a worker to what a delivery is about."""
    row = take(Webhook, delivery_id)
    if row is None:
        return
    if row.event == "operator.heartbeat_missed":
        call_for(Kind.HEARTBEAT)
    elif row.round_id is not None:
        with transaction() as session:
            known = wake(session, row.round_id)
        if not known:
            call_for(Kind.POLL)
    with transaction() as session:
        handled = update(Webhook).where(Webhook.delivery_id == delivery_id)
        session.execute(handled.values(handled_at=func.clock_timestamp()))
    put_back(row, None)
