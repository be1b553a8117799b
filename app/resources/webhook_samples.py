"""What the sandbox sends when it is asked to: one sample of every event, with the fields of the real one.

The one rule kept here: a sample has exactly the keys that the real event has (a test plays a round and compares), in
a round that does not exist.
"""

from datetime import datetime, timedelta
from typing import Any

from protocol.timestamps import format_timestamp

SAMPLE_ROUND = 999_999
"""The round that samples speak of."""

_HASH = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
_NUMBERS = {
    "jackpotNumber": 1_234_567,
    "bonus1": 654_321,
    "bonus2": 54_321,
    "bonus3": 4_321,
    "bonus4": 321,
    "bonus5": 21,
}


def samples(operator_id: str, now: datetime) -> dict[str, tuple[int | None, dict[str, Any]]]:
    """``event → (roundId, data)`` of every event, in the order of a round's life, addressed to this operator."""
    soon = format_timestamp(now + timedelta(hours=1))
    rounds: dict[str, dict[str, Any]] = {
        "round.opened": {"ticketPriceUsdc": 3_000_000, "operatorCount": 5, "scheduledDrawTime": soon},
        "round.sealing": {"sealingDeadline": soon, "manifestsSubmitted": 4},
        "round.sealing_deadline": {"operatorsSealed": 4, "operatorsMissed": 1},
        "round.sealed": {"sealedCount": 4},
        "round.anchored": {"anchorHash": _HASH},
        "round.escrowed": {"totalEscrowed": 240_000_000_000, "operatorsDeposited": 4},
        "round.escrow_deadline": {"operatorsExcluded": ["op_sample"]},
        "round.drawn": {
            "drawSeed": _HASH,
            "winnerIndex": 41_723,
            "winningOperatorId": operator_id,
            "totalTickets": 80_000,
            **_NUMBERS,
        },
        "round.settled": {
            "settlementHash": _HASH,
            "winningOperatorId": operator_id,
            "totalPotUsdc": 240_000_000_000,
            "serviceFeeUsdc": 10_800_000_000,
            "operatorPoolUsdc": 24_000_000_000,
            "winnerBonusUsdc": 1_200_000_000,
            "winnerPayoutUsdc": 194_400_000_000,
        },
        "round.closed": {"totalTickets": 80_000, "totalOperators": 4},
        "round.failed": {"reason": "no escrow"},
        "operator.won": {
            "operatorId": operator_id,
            "winnerIndex": 41_723,
            "bonusUsdc": 1_200_000_000,
            "payoutUsdc": 194_400_000_000,
        },
        "operator.excluded": {"operatorId": operator_id, "reason": "missed_escrow"},
    }
    news: dict[str, tuple[int | None, dict[str, Any]]] = {
        event: (SAMPLE_ROUND, {"roundId": SAMPLE_ROUND, **data}) for event, data in rounds.items()
    }
    silent = {"operatorId": operator_id, "lastHeartbeat": format_timestamp(now - timedelta(minutes=5))}
    return news | {"operator.heartbeat_missed": (None, silent)}
