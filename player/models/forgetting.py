"""What a node forgets, and when: proofs of identity that prove nothing any more, and other people's addresses.

The one rule kept here: nothing that money depends on is ever forgotten: no transfer, ticket, prize, payment or entry of
the audit log.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, delete, func, inspect, select, tuple_
from sqlalchemy.orm import QueryableAttribute, Session

from player.models.idempotency import KEPT, IdempotencyKey
from player.models.mails import Mail
from player.models.sessions import REFRESH_LIFETIME, PasswordReset, PlayerSession, RefreshToken
from player.models.webhooks import Webhook

REMEMBERED: Final = timedelta(days=30)
"""How long a login is remembered once it cannot go on: that a token was used twice is noticed for so long."""
NINETY_DAYS: Final = timedelta(days=90)
BATCH: Final = 1_000


@dataclass(frozen=True)
class Forgotten:
    """Rows of a table whose moment ``since`` lies ``after`` back, if they are ``also`` what they must be."""

    since: QueryableAttribute[Any]
    after: timedelta
    also: Sequence[ColumnElement[bool]] = ()

    def some(self, session: Session) -> int:
        """Forget up to BATCH of them; how many that were. What somebody else holds is left for the next time."""
        model = self.since.class_
        key = inspect(model).primary_key
        old = (
            select(*key)
            .where(self.since < func.clock_timestamp() - self.after, *self.also)
            .limit(BATCH)
            .with_for_update(skip_locked=True, of=model)
            .cte("old")
        )
        gone = session.execute(
            delete(model).where(tuple_(*key).in_(select(old))).returning(key[0]),
            execution_options={"synchronize_session": False},
        )
        return len(gone.all())


FORGOTTEN: Final = (
    Forgotten(IdempotencyKey.created_at, KEPT),
    Forgotten(PasswordReset.expires_at, REMEMBERED),
    Forgotten(RefreshToken.expires_at, REMEMBERED),
    # After its tokens, each of which would bring it back to mind.
    Forgotten(
        PlayerSession.last_used_at,
        REMEMBERED + REFRESH_LIFETIME,
        (~select(RefreshToken.digest).where(RefreshToken.session_id == PlayerSession.id).exists(),),
    ),
    Forgotten(Mail.created_at, NINETY_DAYS, (Mail.due_at.is_(None),)),
    Forgotten(Webhook.received_at, NINETY_DAYS, (Webhook.due_at.is_(None),)),
)
