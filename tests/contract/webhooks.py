"""Interface section 6.2: the fourteen events, what each carries, and where the played rounds emit it.

One rule: what stands in an event's table is what the interface names for it, in the older shape and in the newer one;
the events we could say more in say no more.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass

from tests.contract.fields import SIX_NUMBERS
from tests.contract.receiver import Request
from tests.contract.shapes import HASH, NULL, NUMBER, STRING, STRINGS, TIMESTAMP, Fields, Kind, exactly
from tests.contract.world import CLOSED, FAILED, WON, Party, World
from tests.polling import until


@dataclass(frozen=True)
class Event:
    """One event: where it happens, and the fields of its `data`."""

    round_id: int | None
    company: str
    data: Fields

    @property
    def sample(self) -> Fields:
        """The fields of a sample of it, whose round does not exist."""
        return self.data | {"roundId": NUMBER} if "roundId" in self.data else self.data


def _of(round_id: int, /, at: str = "alba", **data: Kind) -> Event:
    return Event(round_id, at, {"roundId": exactly(round_id), **data})


EVENTS: dict[str, Event] = {
    "round.opened": _of(CLOSED, ticketPriceUsdc=NUMBER, operatorCount=NUMBER, scheduledDrawTime=TIMESTAMP),
    "round.sealing": _of(CLOSED, sealingDeadline=TIMESTAMP, manifestsSubmitted=NUMBER),
    "round.sealing_deadline": _of(CLOSED, operatorsSealed=NUMBER, operatorsMissed=NUMBER),
    "round.sealed": _of(CLOSED, sealedCount=NUMBER),
    "round.anchored": _of(CLOSED, anchorHash=HASH),
    "round.escrowed": _of(CLOSED, totalEscrowed=NUMBER, operatorsDeposited=NUMBER),
    "round.escrow_deadline": _of(CLOSED, operatorsExcluded=STRINGS),
    "round.drawn": Event(
        WON,
        "alba",
        {
            "roundId": exactly(WON),
            "drawSeed": STRING,
            "winnerIndex": NUMBER,
            "winningOperatorId": STRING,
            "totalTickets": NUMBER,
            **SIX_NUMBERS,
        },
    ),
    "round.settled": _of(
        WON,
        settlementHash=HASH,
        winningOperatorId=STRING,
        totalPotUsdc=NUMBER,
        serviceFeeUsdc=NUMBER,
        operatorPoolUsdc=NUMBER,
        winnerBonusUsdc=NUMBER,
        winnerPayoutUsdc=NUMBER,
    ),
    "round.closed": _of(CLOSED, totalTickets=NUMBER, totalOperators=NUMBER),
    "round.failed": _of(FAILED, reason=STRING),
    "operator.won": _of(WON, operatorId=STRING, winnerIndex=NUMBER, bonusUsdc=NUMBER, payoutUsdc=NUMBER),
    "operator.excluded": _of(CLOSED, at="cava", operatorId=STRING, reason=STRING),
    "operator.heartbeat_missed": Event(None, "alba", {"operatorId": STRING, "lastHeartbeat": TIMESTAMP}),
}
NOBODY_WON = {"winnerIndex": NULL, "winningOperatorId": NULL}


def delivered(world: World, event: str, company: str | None = None, round_id: int | None = None) -> Request:
    """The first attempt at delivering an event to the operator that it is looked for at."""
    where = EVENTS[event]
    party: Party = world.parties[company or where.company]
    wanted = (event, where.round_id if round_id is None else round_id)

    def found() -> Request | None:
        came = world.receiver.at(party.path)
        return next((one for one in came if (one.told["event"], one.told["roundId"]) == wanted), None)

    request = until(found, within=20, what=f"{wanted} at {party.path}")
    assert request is not None
    return request


def signature(request: Request, key: str) -> str:
    """What the signature of a request has to be."""
    return hmac.new(key.encode(), request.body, hashlib.sha256).hexdigest()
