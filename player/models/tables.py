"""Every table in one metadata, for migrations and for whoever must be sure that all of them are known."""

from player.models import (
    chores,
    idempotency,
    kyc,
    ledger,
    limits,
    mails,
    payments,
    players,
    prizes,
    rounds,
    sessions,
    staff,
    tickets,
    transactions,
    webhooks,
)
from player.models.base import Base

__all__ = [
    "chores",
    "idempotency",
    "kyc",
    "ledger",
    "limits",
    "mails",
    "metadata",
    "payments",
    "players",
    "prizes",
    "rounds",
    "sessions",
    "staff",
    "tickets",
    "transactions",
    "webhooks",
]

metadata = Base.metadata
