"""The small world that all examples of the documentation are taken from: round 7 and those who play in it.

The one rule kept here: one name, one thing. ``roundId`` is 7 and ``operatorId`` is Lucky Numbers wherever they stand,
and sums are computed by the rules themselves, so a reader can follow one round through every answer. Where one name
means two things, the schema's name goes before it (``Milestone.oddsRange``).
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

from app.version import VERSION
from protocol.lifecycle import State, Trigger
from protocol.merkle import leaf_hash, write_path
from protocol.prizes import TIERS
from protocol.rules import Rules
from protocol.seed import COMMIT_REVEAL, HONEST_LIMITS
from protocol.settlement import Stake, available_for_prizes, settlement_terms, worst_case
from protocol.tickets import ticket_line

OPERATOR = "op_5c1f8a90d2b34e76"
DELIVERY = "3f1b0a52-6c0e-4f4e-9a53-2d6f6f0c8f11"
_NUMBERS = {
    "jackpotNumber": 4_815_162,
    "bonus1": 342_108,
    "bonus2": 15_906,
    "bonus3": 7_421,
    "bonus4": 318,
    "bonus5": 42,
}
_LINE = ticket_line(7, OPERATOR, "t-000001", 4_815_162, 342_108, 15_906, 7_421, 318, 42, True).decode()
_OTHERS = [OPERATOR, "op_8b7d02f4c6a1e935", "op_e2964d1b3f70a85c"]
_TICKETS = 184_302
_MANIFEST = '{"roundId":7,"ticketCount":61434}'
_RULES = Rules(
    ticket_price=3_000_000,
    odds_range=10_000_000,
    fee_bps=500,
    commission_bps=1_000,
    reserve_bps=400,
    winner_bonus_bps=1_000,
    prizes=tuple(tier.prize for tier in TIERS),  # type: ignore[arg-type]
    ranges=tuple(tier.range for tier in TIERS),  # type: ignore[arg-type]
)


def digest_of(name: str) -> str:
    """A hash to show: each name has its own."""
    return sha256(name.encode()).hexdigest()


def _secret(name: str) -> str:
    return f"{digest_of(name)[:16]}_{digest_of(name[::-1])}"


def _path(levels: Iterable[int]) -> str:
    return write_path(sha256(f"level {level}".encode()).digest() for level in levels)


_WON = {5: ("t-000001", "5000000")}
_TIER_COUNTS = (0, 2, 18, 184, 1_843)
_STAKES = [Stake(operator_id, _TICKETS // 3) for operator_id in _OTHERS]
_POOL, _RESERVE = 41_425_396_140_000, 184_220_000_000
_TERMS, _ = settlement_terms(_RULES, _STAKES, [0, *_TIER_COUNTS], _POOL, _RESERVE)


def _tiers(counted: str, paid: bool = False) -> list[dict[str, Any]]:
    """All five tiers; the last shows a winner."""
    shown = []
    for tier, count in zip(TIERS, _TIER_COUNTS, strict=True):
        winners: list[dict[str, Any]] = []
        if tier.number in _WON:
            ticket_id, prize = _WON[tier.number]
            winners = [{"operatorId": OPERATOR, "ticketId": ticket_id, "prizeAmount": prize, "claimed": False}]
        about: dict[str, Any] = {"tier": tier.number, counted: count}
        if paid:
            about["totalPayout"] = str(count * tier.prize)
            winners = [won | {"claimDeadline": "2026-05-01T20:00:03.412Z"} for won in winners]
        shown.append(about | {"winners": winners})
    return shown


_SETTLED = digest_of("settlementHash")
_LOG: list[tuple[str, str, dict[str, Any]]] = [
    ("ROUND_OPENED", "2026-01-30T22:00:00.000Z", {}),
    ("MANIFEST_SUBMITTED", "2026-01-31T17:42:10.905Z", {"operatorId": OPERATOR, "ticketCount": _TICKETS // 3}),
    ("ROUND_SEALED", "2026-01-31T18:30:01.377Z", {"sealedCount": 3}),
    ("ROUND_DRAWN", "2026-01-31T20:00:03.412Z", _NUMBERS),
    ("ROUND_SETTLED", "2026-01-31T21:00:00.640Z", {"settlementHash": _SETTLED}),
]

WORLD: Mapping[str, Any] = {
    # Who
    "operatorId": OPERATOR,
    "operatorIds": _OTHERS,
    "escrowedOperatorIds": _OTHERS,
    "excludedOperatorIds": [],
    "applicationId": "app_9d41c07ab2e65f38",
    "name": "Lucky Numbers Ltd",
    "companyName": "Lucky Numbers Ltd",
    "jurisdiction": "Malta",
    "gamingLicenseNumber": "MGA/B2C/394/2017",
    "contactEmail": "ops@luckynumbers.example",
    "contactName": "Maria Borg",
    "ethereumAddress": "0x52908400098527886E0F7030069857D2E4169EE7",
    "address": "0x52908400098527886E0F7030069857D2E4169EE7",
    "website": "https://luckynumbers.example",
    "description": "Online and retail lottery in Malta since 2017.",
    "webhookUrl": "https://luckynumbers.example/hooks/lottery",
    "url": "https://luckynumbers.example/hooks/lottery",
    "active": True,
    "reputationScore": 97,
    "totalRoundsParticipated": 6,
    "totalRoundsWon": 1,
    "totalRoundsEscrowed": 6,
    "totalRoundsExcluded": 0,
    "totalPayoutsOnTime": 41,
    "totalPayoutsLate": 0,
    "registeredAt": "2026-01-05T09:30:00.000Z",
    "lastHeartbeat": "2026-01-31T19:58:30.120Z",
    "onChainId": None,
    "onChainBondAmount": None,
    "onChainBondStatus": None,
    "onChainLastAttestation": None,
    # Getting in
    "apiKey": f"sk_{_secret('key')}",
    "applicationToken": "Qm3kM0sVb1dZcW5rX2hvbGRzX3RoZV9kb29yX29wZW4",
    "accessToken": "eyJhbGciOiJIUzI1NiIsImtpZCI6ImsxIn0.eyJzdWIiOiJvcF81YzFmOGE5MGQyYjM0ZTc2In0.bm90LXNpZ25lZA",
    "refreshToken": "dGhpcyBpcyBub3QgYSByZWFsIHJlZnJlc2ggdG9rZW4gYnV0IGl0IGxvb2tzIGxpa2Ugb25l",
    "expiresIn": 900,
    "Applied.status": "pending",
    "Applied.message": "The application was received and will be reviewed.",
    "Applied.warning": "Keep the application token: it is needed to read the status and is not shown again.",
    "ApplicationStatus.status": "approved",
    "Reviewed.status": "approved",
    "submittedAt": "2026-01-04T14:12:09.008Z",
    "reviewedAt": "2026-01-05T09:30:00.000Z",
    "reviewNote": "License confirmed with the regulator.",
    "step1": "Obtain your API key from the coordinator's staff; it is shown once.",
    "step2": "Exchange it for an access token: POST /api/auth/operator/login.",
    "step3": "Register your webhook: PUT /api/operator/webhook.",
    "step4": "Send heartbeats: POST /api/operator/heartbeat.",
    "step5": "Submit tickets and a manifest to your first round: POST /api/operator/tickets.",
    "sdkDocs": "https://coordinator.example/docs/guide",
    # The round
    "id": 7,
    "roundId": 7,
    "drawId": "draw_7",
    "mode": COMMIT_REVEAL,
    "honestLimits": list(HONEST_LIMITS[COMMIT_REVEAL]),
    "Proof.rules": _RULES.as_hashed(),
    "ticketPriceUsdc": 3_000_000,
    "oddsRange": 10_000_000,
    "totalTickets": _TICKETS,
    "operatorCount": 3,
    "escrowedOperatorCount": 3,
    "excludedOperatorCount": 0,
    "totalDeposited": str(_TERMS.G),
    "worstCaseUsdc": str(worst_case(_RULES, (2, 4, 21, 206, 1_921))),
    "availableForPrizesUsdc": str(available_for_prizes(_RULES, _STAKES, _POOL, _RESERVE)),
    "failureReason": None,
    "btcSettlementTxHash": None,
    "createdAt": "2026-01-30T22:00:00.000Z",
    "Draw.createdAt": "2026-01-31T20:00:03.412Z",
    "DrawSummary.createdAt": "2026-01-31T20:00:03.412Z",
    "sealAt": "2026-01-31T18:00:00.000Z",
    "sealedAt": "2026-01-31T18:00:04.218Z",
    "sealingDeadline": "2026-01-31T18:30:00.000Z",
    "escrowDeadline": "2026-01-31T19:30:00.000Z",
    "scheduledDrawTime": "2026-01-31T20:00:00.000Z",
    "settleAt": "2026-01-31T21:00:00.000Z",
    "closeAt": "2026-02-01T21:00:00.000Z",
    "timestamp": "2026-01-31T20:00:03.412Z",
    "at": "2026-01-31T20:00:03.412Z",
    "trigger": Trigger.MATCHING_COMPLETE.value,
    "Step.state": State.DRAWN.value,
    "exclusions": [],
    "reason": "Asked for by the operator on the phone",
    "Exclusion.reason": "missed_escrow",
    "ExcludedData.reason": "missed_escrow",
    "FailRound.reason": "The regulator asked for it",
    "Retabulate.reason": "The archive was restored from the backup",
    "SecondTabulation.verdict": "agree",
    "SecondTabulation.operators": [
        {
            "operatorId": operator_id,
            "verdict": "agree",
            "faults": [],
            "storedWins": wins,
            "foundWins": wins,
            "differences": [],
        }
        for operator_id, wins in zip(_OTHERS, (683, 682, 682), strict=True)
    ],
    **{key: [0, *_TIER_COUNTS] for key in ("drawnCounts", "storedCounts", "foundCounts")},
    "FailedData.reason": "no escrow",
    "beacon": None,
    "events": [{"type": kind, "roundId": 7, "timestamp": at, "data": data} for kind, at, data in _LOG],
    "reserveCredits": [],
    "Proof.ledger": _TERMS.as_hashed(),
    # Tickets and manifests
    "ticketId": "t-000001",
    **_NUMBERS,
    "isQuickPick": True,
    "ticketsAccepted": 1,
    "ticketCount": 61_434,
    "manifestJson": _MANIFEST,
    "manifestHash": sha256(_MANIFEST.encode()).hexdigest(),
    "sealedCount": 3,
    "totalInvited": 3,
    # The draw
    "jackpotWon": False,
    "jackpotWinnerCount": 0,
    "jackpotAmount": str(_TERMS.P),
    "jackpotWinners": [],
    "subPrizeTotalUsdc": str(_TERMS.subPaid),
    "winnerIndex": None,
    "winningOperatorId": None,
    "subPrizeTiers": _tiers("count"),
    "SubPrizes.tiers": _tiers("winnerCount", paid=True),
    "bonusTiers": [
        {"tier": 1, "winnerCount": 0, "winners": []},
        {"tier": 2, "winnerCount": 0, "winners": []},
        {"tier": 3, "winnerCount": 0, "winners": []},
        {"tier": 4, "winnerCount": 0, "winners": []},
        {"tier": 5, "winnerCount": 1, "winners": [{"ticketId": "t-000001"}]},
    ],
    "Checked.totalWinners": 1,
    "totalWinners": sum(_TIER_COUNTS),
    "totalSubPrizeWinners": sum(_TIER_COUNTS),
    "winnerCounts": [0, *_TIER_COUNTS],
    "tier": 5,
    "winnerCount": 1,
    "prizeAmount": "5000000",
    "totalPayout": "9215000000",
    "claimed": False,
    "claimDeadline": "2026-05-01T20:00:03.412Z",
    "WonData.winnerIndex": 118_204,
    "line": _LINE,
    "leafHash": leaf_hash(_LINE.encode()).hex(),
    "leafIndex": 0,
    "auditPath": _path(range(16)),
    "Neighbour.auditPath": _path(range(1)),
    "sharedPath": _path(range(1, 16)),
    "treeSize": _TICKETS // 3,
    "accepted": 1,
    "alreadyClaimed": 0,
    "late": 0,
    # The lottery
    "jackpot": str(_TERMS.pool1),
    "JackpotCounter.jackpot": f"{_TERMS.pool1 // 1_000_000}.{_TERMS.pool1 % 1_000_000 // 10_000:02d}",
    "currency": "USD",
    "drawsSinceLastWin": 4,
    "lastWinRoundId": 3,
    "cumulativeTickets": "1204518",
    "Milestone.cumulativeTickets": "0",
    "NextMilestone.cumulativeTickets": "100000000",
    "NextMilestone.oddsRange": 100_000_000,
    "ticketsRemaining": "98795482",
    "currentOddsRange": 10_000_000,
    "currentOdds": "1 in 10,000,000",
    "nextDrawTime": "2026-02-01T20:00:00.000Z",
    "nextDrawRoundId": 8,
    "ticketPrice": 3_000_000,
    "JackpotCounter.ticketPrice": "3.00",
    "updatedAt": "2026-01-31T22:15:00.000Z",
    "totalRounds": 8,
    "closedRounds": 6,
    "settledRounds": 6,
    "failedRounds": 1,
    "activeRounds": 1,
    "totalOperators": 3,
    "activeOperators": 3,
    "totalTicketsSold": 1_210_044,
    "jackpotPool": str(_TERMS.pool1),
    "protocolLaunchDate": "2026-01-05T09:00:00.000Z",
    # Money
    "amountUsdc": "1000000000000",
    "balanceUsdc": "1447094000000",
    "inEscrowUsdc": "0",
    "escrow": {
        "requiredUsdc": str(_STAKES[0].tickets * _RULES.ticket_price),
        "depositedUsdc": str(_STAKES[0].tickets * _RULES.ticket_price),
    },
    "nonceCommitted": True,
    "nonceRevealed": True,
    "excludedReason": None,
    "reference": "SEPA 2026-01-30/0017",
    "totalEscrowed": _TERMS.G,
    "totalPotUsdc": _TERMS.G,
    "serviceFeeUsdc": _TERMS.feeKept,
    "operatorPoolUsdc": _TERMS.C,
    "winnerBonusUsdc": 0,
    "winnerPayoutUsdc": 0,
    "bonusUsdc": _TERMS.F // 10,
    "payoutUsdc": _TERMS.P,
    # Looking after it
    "heartbeatsMissed": 0,
    "noncesWithheld": 0,
    "keyId": "2c70e12b7a0646f9",
    "apiKeys": [
        {"keyId": "2c70e12b7a0646f9", "createdAt": "2026-01-31T09:00:00.000Z", "expiresAt": None},
        {
            "keyId": "9e107d9d372bb682",
            "createdAt": "2026-01-05T09:30:00.000Z",
            "expiresAt": "2026-02-01T09:00:00.000Z",
        },
    ],
    "overlapSeconds": 86_400,
    "previousKeyExpiresAt": "2026-02-01T09:00:00.000Z",
    "attemptCount": 3,
    "attemptsBefore": 0,
    "Delivery.status": "failed",
    "DeliveryDetail.status": "failed",
    "Delivery.errorClass": "timeout",
    "DeliveryDetail.errorClass": "timeout",
    "leasedUntil": None,
    "finishedAt": "2026-01-31T20:03:14.006Z",
    "nextCursor": None,
    "body": '{"event":"round.opened","roundId":7,"timestamp":"2026-01-30T22:00:00.000Z","data":{"roundId":7,'
    '"ticketPriceUsdc":3000000,"operatorCount":3,"scheduledDrawTime":"2026-01-31T20:00:00.000Z"}}',
    "DeliveryDetail.attempts": [
        {
            "number": number,
            "startedAt": at,
            "durationMs": 30_000,
            "url": "https://luckynumbers.example/hooks/lottery",
            "statusCode": None,
            "errorClass": "timeout",
            "detail": "no answer in time",
            "phasesMs": {
                "dns": 11.304,
                "connect": 21.77,
                "tls": 44.021,
                "send": 0.212,
                "wait": 29_922.693,
                "receive": None,
            },
            "peer": "203.0.113.7",
            "connectionReused": False,
            "responseBody": None,
        }
        for number, at in enumerate(
            ("2026-01-30T22:00:00.104Z", "2026-01-30T22:01:01.870Z", "2026-01-30T22:03:34.552Z"), 1
        )
    ],
    "RequeueMatching.status": "failed",
    "RequeueMatching.event": "round.drawn",
    "RequeueMatching.errorClass": "timeout",
    "RequeueMatching.reason": "Their receiver is back",
    "Reason.reason": "Their receiver is back",
    "since": "2026-01-31T19:00:00Z",
    "until": "2026-01-31T21:00:00Z",
    "dryRun": True,
    "all": False,
    "matched": 4,
    "requeued": 0,
    "RequeuePreview.operators": [{"operatorId": OPERATOR, "deliveries": 4}],
    "RequeuePreview.events": [{"event": "round.drawn", "deliveries": 4}],
    "errorClasses": [{"errorClass": "timeout", "deliveries": 4}],
    "jobId": 12,
    "Requeue.state": "finished",
    "Requeue.createdAt": "2026-01-31T21:00:04.118Z",
    "Requeue.finishedAt": "2026-01-31T21:00:05.391Z",
    "RequeueStarted.createdAt": "2026-01-31T21:00:04.118Z",
    "Requeue.requeued": 4,
    "Requeue.delivered": 4,
    "Requeue.reason": "Their receiver is back",
    "RequeueStarted.state": "running",
    "RequeueStarted.dryRun": False,
    "RequeueStarted.delivered": 0,
    "RequeueStarted.finishedAt": None,
    "RequeueStarted.reason": "Their receiver is back",
    "RequeueFilters.errorClass": "timeout",
    "RequeueFilters.event": "round.drawn",
    "RequeueFilters.since": "2026-01-31T19:00:00.000Z",
    "RequeueFilters.until": "2026-01-31T21:00:00.000Z",
    "Cancel.reason": "It was the wrong operator",
    "cancelledAt": None,
    "cancelledBy": None,
    "Endpoint.state": "paused",
    "Endpoint.failures": 3,
    "openUntil": None,
    "waiting": 12,
    "Endpoint.reason": "Their receiver answers everything twice",
    "Hold.reason": "Their receiver answers everything twice",
    "Queue.name": "deliveries",
    "Pause.reason": "Receivers of half the operators are down",
    "Queue.reason": "Receivers of half the operators are down",
    "paused": True,
    "depth": 12,
    "oldestDueSeconds": 4.218,
    "inFlight": 0,
    "pausedAt": "2026-01-31T20:05:00.000Z",
    "pausedBy": "maria (4f9d2c1b7a0646f9)",
    "postingId": 311,
    "Posting.reference": "settlement:7",
    "kind": "settlement",
    "Posting.entries": [
        {"account": account, "amountUsdc": str(amount)}
        for account, amount in (
            ("escrow:7", -_TERMS.G),
            ("fee", _TERMS.feeKept),
            (f"operator:{OPERATOR}", _TERMS.C // 3 + _TERMS.subPaid),
            *((f"operator:{operator_id}", _TERMS.C // 3) for operator_id in _OTHERS[1:]),
            ("pool", _TERMS.pool1 - _TERMS.pool0),
            ("reserve", _TERMS.reserve1 - _TERMS.reserve0),
        )
    ],
    "account": "pool",
    "Account.balanceUsdc": str(_TERMS.pool1),
    "entryId": 42,
    "actor": "maria (4f9d2c1b7a0646f9)",
    "action": "operator.deposit",
    "subject": OPERATOR,
    "AuditEntry.reason": None,
    "AuditEntry.details": {"reference": "SEPA 2026-01-30/0017", "amountUsdc": "1000000000000"},
    # Webhooks
    "manifestsSubmitted": 3,
    "operatorsSealed": 3,
    "operatorsMissed": 0,
    "operatorsDeposited": 3,
    "operatorsExcluded": ["op_e2964d1b3f70a85c"],
    "OperatorHeartbeatMissedWebhook.roundId": None,
    "statusCode": 200,
    "TestDelivery.status": "delivered",
    "LoggedDelivery.status": "delivered",
    "hint": "Your receiver answered 200. Did it check X-Service-Signature? "
    f"Look for delivery {DELIVERY} in GET /api/operator/webhook-logs.",
    "deliveryId": DELIVERY,
    "nextAttemptAt": None,
    "number": 1,
    "startedAt": "2026-01-31T20:00:03.498Z",
    "durationMs": 87,
    "errorClass": None,
    "detail": None,
    "phasesMs": {"dns": None, "connect": None, "tls": None, "send": 0.204, "wait": 86.31, "receive": 0.119},
    "peer": "203.0.113.7",
    "connectionReused": True,
    "responseBody": "thanks",
    "LoggedAttempt.url": "https://luckynumbers.example/hooks/lottery",
    # Lists and the service
    "count": 1,
    "limit": 20,
    "offset": 0,
    "success": True,
    "version": VERSION,
    "pending": 0,
    "delivered": 27,
    "failed": 0,
    "database": "ok",
    "redis": "ok",
}
