"""Interface section 2 as tables: every field of what the coordinator shows, and the kind of its value.

One rule: what the interface names stands in tables of its own, apart from what we add to it (`OURS`), so that nobody
takes the one for the other.
"""

from __future__ import annotations

from tests.contract.shapes import (
    ADDRESS,
    BOOLEAN,
    COUNT_TEXT,
    HASH,
    MICRO,
    NULL,
    NUMBER,
    STRING,
    STRINGS,
    TIMESTAMP,
    URL,
    Fields,
    exactly,
    object_of,
)

NUMBERS = ("jackpotNumber", "bonus1", "bonus2", "bonus3", "bonus4", "bonus5")
SIX_NUMBERS = dict.fromkeys(NUMBERS, NUMBER)

# 2.1. Strings and numbers of a round are null until they are known, never absent.

ROUND_IN_LIST: Fields = {
    "id": NUMBER,
    "state": STRING,
    "ticketPriceUsdc": NUMBER,
    "oddsRange": NUMBER,
    "totalTickets": NUMBER,
    "operatorCount": NUMBER,
    "escrowedOperatorCount": NUMBER,
    "excludedOperatorCount": NUMBER,
    "jackpotWon": BOOLEAN,
    "jackpotWinnerCount": NUMBER,
    "jackpotAmount": MICRO,
    "subPrizeTotalUsdc": MICRO,
    "totalDeposited": MICRO,
    "createdAt": TIMESTAMP,
    "scheduledDrawTime": TIMESTAMP,
}
ROUND_ADDS: Fields = {
    "operatorIds": STRINGS,
    "escrowedOperatorIds": STRINGS,
    "excludedOperatorIds": STRINGS,
    "fullManifestHash": HASH,
    "effectiveManifestHash": HASH,
    "drawSeed": STRING,
    "winnerIndex": NUMBER,
    "winningOperatorId": STRING,
    **SIX_NUMBERS,
    "previousRoundHash": HASH,
    "chainedAnchorHash": HASH,
    "settlementHash": HASH,
    "btcSettlementTxHash": NULL,  # Nothing is anchored in Bitcoin yet.
}
ROUND_OURS: Fields = {
    "seedCommit": HASH,
    "rulesHash": HASH,
    "worstCaseUsdc": MICRO,
    "availableForPrizesUsdc": MICRO,
    "failureReason": NULL,  # A round that goes well does not fail.
}
"""What we add to the detail view: what a stranger needs to verify the round, and why it failed."""

ROUND: Fields = {**ROUND_IN_LIST, **ROUND_ADDS, **ROUND_OURS}
"""A round that is settled and whose jackpot was won: everything is known."""

NOT_SEALED_YET = dict.fromkeys(
    (
        *("fullManifestHash", "effectiveManifestHash", "previousRoundHash", "chainedAnchorHash"),
        *("worstCaseUsdc", "availableForPrizesUsdc"),
    ),
    NULL,
)
NOT_DRAWN_YET = dict.fromkeys(
    (*NUMBERS, "drawSeed", "winnerIndex", "winningOperatorId", "jackpotAmount", "subPrizeTotalUsdc", "settlementHash"),
    NULL,
)
ROUND_IN_LIST_AT_ANY_TIME: Fields = {
    **ROUND_IN_LIST,
    "jackpotAmount": MICRO | NULL,
    "subPrizeTotalUsdc": MICRO | NULL,
}
INVITED_ROUND: Fields = {
    **{field: ROUND_IN_LIST[field] for field in ("id", "state", "ticketPriceUsdc", "oddsRange", "totalTickets")},
    "operatorIds": STRINGS,
    "scheduledDrawTime": TIMESTAMP,
}

# 2.2

EVENT_DATA: dict[str, Fields] = {
    "ROUND_OPENED": {},
    "MANIFEST_SUBMITTED": {"operatorId": STRING, "ticketCount": NUMBER},
    "ROUND_SEALED": {"sealedCount": NUMBER},
    "ROUND_DRAWN": SIX_NUMBERS,
    "ROUND_SETTLED": {"settlementHash": HASH},
}

# 2.3 and 2.4

DRAW_SUMMARY: Fields = {
    "drawId": STRING,
    "roundId": NUMBER,
    **SIX_NUMBERS,
    "jackpotWon": BOOLEAN,
    "jackpotWinnerCount": NUMBER,
    "jackpotAmount": MICRO,
    "createdAt": TIMESTAMP,
}
DRAW: Fields = {**DRAW_SUMMARY, "drawSeed": STRING}
WINNER: Fields = {"operatorId": STRING, "ticketId": STRING, "prizeAmount": MICRO, "claimed": BOOLEAN}
WINNER_IN_BREAKDOWN: Fields = {**WINNER, "claimDeadline": TIMESTAMP}

# 2.6 and 2.7

OPERATOR: Fields = {
    "operatorId": STRING,
    "name": STRING,
    "jurisdiction": STRING,
    "active": BOOLEAN,
    "reputationScore": NUMBER,
    "totalRoundsParticipated": NUMBER,
    "totalRoundsWon": NUMBER,
    "registeredAt": TIMESTAMP,
}
OPERATOR_ADDS: Fields = {"totalRoundsEscrowed": NUMBER, "totalRoundsExcluded": NUMBER, "totalPayoutsOnTime": NUMBER}
PROFILE_ADDS: Fields = {
    "address": ADDRESS,
    "webhookUrl": STRING,
    "lastHeartbeat": TIMESTAMP,
    "totalPayoutsLate": NUMBER,
    "onChainId": STRING | NULL,
    "onChainBondAmount": MICRO | NULL,
    "onChainBondStatus": STRING | NULL,
    "onChainLastAttestation": TIMESTAMP | NULL,
}
PROFILE: Fields = {**OPERATOR, **OPERATOR_ADDS, **PROFILE_ADDS}

# 2.8

ONBOARDING: Fields = {**{f"step{number}": STRING for number in range(1, 6)}, "sdkDocs": URL}
PENDING: Fields = {
    "applicationId": STRING,
    "companyName": STRING,
    "status": exactly("pending"),
    "submittedAt": TIMESTAMP,
    "reviewedAt": NULL,
    "reviewNote": NULL,
}
APPROVED: Fields = {
    **PENDING,
    "status": exactly("approved"),
    "reviewedAt": TIMESTAMP,
    "reviewNote": exactly("welcome"),
    "operatorId": STRING,
    "onboarding": object_of(ONBOARDING),
}

# 2.9

STATISTICS: Fields = {
    **dict.fromkeys(
        (
            *("totalRounds", "closedRounds", "settledRounds", "failedRounds", "activeRounds"),
            *("totalOperators", "activeOperators", "totalTicketsSold", "drawsSinceLastWin", "currentOddsRange"),
        ),
        NUMBER,
    ),
    "jackpotPool": MICRO,
    "cumulativeTickets": COUNT_TEXT,
    "protocolLaunchDate": TIMESTAMP,
}

# 7: an error says what went wrong to a person (`error`) and to a program (`code`).

ERROR: Fields = {"error": STRING, "code": STRING}
