"""Writing down webhooks as they come.

The one rule kept here: a delivery that came before is counted and changes nothing else.
"""

from typing import Any

from sqlalchemy import func
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from player.models.webhooks import Webhook


def receive(session: Session, delivery_id: str, event: str, round_id: int | None, body: dict[str, Any]) -> bool:
    """Write a delivery down, due at once; False when it came before."""
    new = insert(Webhook).values(
        delivery_id=delivery_id, event=event, round_id=round_id, body=body, due_at=func.clock_timestamp()
    )
    counted = new.on_conflict_do_update(
        index_elements=[Webhook.delivery_id], set_={"repeats": Webhook.repeats + 1}
    ).returning(Webhook.repeats)
    return session.scalars(counted).one() == 0
