"""Every table in one metadata, for migrations and for whoever must be sure that all of them are known."""

from models import (
    applications,
    archives,
    audit,
    chores,
    chunks,
    credentials,
    deliveries,
    draws,
    endpoints,
    expiries,
    jackpot,
    ledger,
    operators,
    participation,
    queues,
    requeue_jobs,
    rounds,
    tallies,
    ticket_drops,
    tickets,
    work,
)
from models.base import Base

__all__ = [
    "applications",
    "archives",
    "audit",
    "chores",
    "chunks",
    "credentials",
    "deliveries",
    "draws",
    "endpoints",
    "expiries",
    "jackpot",
    "ledger",
    "metadata",
    "operators",
    "participation",
    "queues",
    "requeue_jobs",
    "rounds",
    "tallies",
    "ticket_drops",
    "tickets",
    "work",
]

metadata = Base.metadata
