"""A client of the coordinator for operators: all an operator asks of it, typed, retried, and safe to call again.

    with Coordinator("https://coordinator.example", api_key) as coordinator:
        coordinator.submit_tickets(7, tickets)
        root = tickets_root(7, coordinator.operator_id, tickets)
        coordinator.submit_manifest(7, root, len(tickets))

It needs `requests` and the `protocol` package, and nothing else of the coordinator's. How it is used is written in
docs/sdk.md; what can go wrong, in `player.coordinator.errors`.

The one rule kept here: what is listed below is for others to use, all else may change.
"""

from player.coordinator.client import Coordinator
from player.coordinator.errors import (
    Conflict,
    CoordinatorError,
    Forbidden,
    Invalid,
    NotFound,
    RateLimited,
    Refused,
    TryLater,
    Unauthorized,
    Unavailable,
    Unreachable,
    Unreadable,
)
from player.coordinator.manifests import Manifest, make_manifest, tickets_root
from player.coordinator.public_shapes import (
    Application,
    ApplicationStatus,
    Applied,
    Draw,
    InclusionProof,
    Jackpot,
    Odds,
    PublicRound,
    RoundEvent,
    TierPayout,
    Winner,
    Winners,
    WinnersOfTier,
)
from player.coordinator.reading import Micro
from player.coordinator.shapes import (
    Balance,
    Checked,
    Escrow,
    Heartbeat,
    InvitedRound,
    LoggedAttempt,
    LoggedDelivery,
    ManifestAccepted,
    OwnRound,
    Profile,
    Reported,
    Submitted,
    TestedDelivery,
    Win,
)
from protocol.seed import nonce_commit
from protocol.tickets import Ticket

__all__ = [
    "Application",
    "ApplicationStatus",
    "Applied",
    "Balance",
    "Checked",
    "Conflict",
    "Coordinator",
    "CoordinatorError",
    "Draw",
    "Escrow",
    "Forbidden",
    "Heartbeat",
    "InclusionProof",
    "Invalid",
    "InvitedRound",
    "Jackpot",
    "LoggedAttempt",
    "LoggedDelivery",
    "Manifest",
    "ManifestAccepted",
    "Micro",
    "NotFound",
    "Odds",
    "OwnRound",
    "Profile",
    "PublicRound",
    "RateLimited",
    "Refused",
    "Reported",
    "RoundEvent",
    "Submitted",
    "TestedDelivery",
    "Ticket",
    "TierPayout",
    "TryLater",
    "Unauthorized",
    "Unavailable",
    "Unreachable",
    "Unreadable",
    "Win",
    "Winner",
    "Winners",
    "WinnersOfTier",
    "make_manifest",
    "nonce_commit",
    "tickets_root",
]
