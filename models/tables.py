"""Every table in one metadata, for migrations and for whoever must be sure that all of them are known."""

from models import (
    applications,
    audit,
    chunks,
    credentials,
    deliveries,
    draws,
    jackpot,
    ledger,
    operators,
    participation,
    queues,
    rounds,
    tickets,
    work,
)
from models.base import Base

__all__ = [
    "applications",
    "audit",
    "chunks",
    "credentials",
    "deliveries",
    "draws",
    "jackpot",
    "ledger",
    "metadata",
    "operators",
    "participation",
    "queues",
    "rounds",
    "tickets",
    "work",
]

metadata = Base.metadata
