"""Interface section 2.12 as tables: every field that an operator's node shows its players, and the kind of its value.

One rule: what the interface names stands in tables of its own, apart from what we add to it (`…_OURS`).
"""

from __future__ import annotations

import re

from tests.contract.fields import SIX_NUMBERS
from tests.contract.shapes import BOOLEAN, MICRO, NULL, NUMBER, STRING, TIMESTAMP, Fields, Kind, exactly, object_of

_SIGNED = re.compile(r"0|-?[1-9]\d*")


def _one_of(*words: str) -> Kind:
    kind = exactly(words[0])
    for word in words[1:]:
        kind = kind | exactly(word)
    return kind


SIGNED_MICRO = Kind(
    "a string of signed micro-USDC",
    lambda value: [] if isinstance(value, str) and _SIGNED.fullmatch(value) else [f"{value!r} is no signed amount"],
)

PLAYER: Fields = {
    "id": NUMBER,
    "email": STRING,
    "displayName": STRING,
    "kycLevel": _one_of("none", "basic", "full"),
    "createdAt": TIMESTAMP,
}
TOKENS: Fields = {"accessToken": STRING, "refreshToken": STRING, "expiresIn": exactly(900)}
LOGGED_IN: Fields = {"player": object_of(PLAYER), "tokens": object_of(TOKENS)}

TICKET: Fields = {
    "id": NUMBER,
    "ticketId": STRING,
    "roundId": NUMBER,
    **SIX_NUMBERS,
    "status": _one_of("active", "won", "lost"),
    "winnings": MICRO | NULL,
    "purchasedAt": TIMESTAMP,
}
TICKET_OURS: Fields = {"isQuickPick": BOOLEAN, "price": MICRO}

PRIZE: Fields = {
    "id": NUMBER,
    "ticketId": STRING,
    "tier": NUMBER,
    "amount": MICRO,
    "status": _one_of("unclaimed", "claimed"),
    "claimedAt": TIMESTAMP | NULL,
}
PRIZE_OURS: Fields = {"roundId": NUMBER, "claimDeadline": TIMESTAMP | NULL}
CLAIMED: Fields = {"id": NUMBER, "status": exactly("claimed"), "claimedAt": TIMESTAMP}

TRANSACTION: Fields = {
    "id": NUMBER,
    "type": _one_of("deposit", "purchase", "withdrawal", "prize", "refund", "credit"),
    "amount": SIGNED_MICRO,
    "status": _one_of("pending", "completed", "failed"),
    "reference": STRING | NULL,
    "createdAt": TIMESTAMP,
}

BALANCE: Fields = {"balance": MICRO, "currency": exactly("USDC")}
BALANCE_OURS: Fields = {"pendingWithdrawals": MICRO}

LIMITS: Fields = {
    "dailyLimit": MICRO | NULL,
    "weeklyLimit": MICRO | NULL,
    "monthlyLimit": MICRO | NULL,
    "selfExclusionUntil": TIMESTAMP | NULL,
}
LIMITS_OURS: Fields = {"pending": object_of({})}
"""Looser limits that wait; none unless one was asked for."""
