"""The two shapes in which news comes: one announcement to everybody, and a steady stream of small ones.

The one rule kept here: a delay is from the commit to the first time that the delivery is in its receiver's hands, by
one clock. What has not come when the waiting is over counts as infinitely late, and is not left out.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from typing import Any

from bench.receiver import Arrival, Receiver
from bench.webhook_ours import Ours
from bench.webhook_peers import Peer
from bench.webhook_table import Delays

ENDPOINTS = 1_000
HANG_EVERY = 5
HANG_SECONDS = 35.0
"""One endpoint in five answers nothing for longer than we would wait (30 s)."""
STREAM_TO = 20
STREAM_EVERY = 0.2
"""The stream: news for so many endpoints, the next ones each time, every so many seconds."""
BURST_SECONDS = 60.0
_BEFORE_SECONDS = 30.0
DATA = {
    "drawSeed": "5f" * 32,
    "winnerIndex": None,
    "winningOperatorId": None,
    "totalTickets": 100_000,
    "jackpotNumber": 4_711_815,
    **{f"bonus{place}": 42 * place for place in range(1, 6)},
}
"""As much as a `round.drawn` has to say."""


def burst(ours: Ours, receiver: Receiver) -> tuple[float, Delays]:
    """Tell everybody at once: deliveries a second from the commit to the last arrival, and the delays.

    :raises RuntimeError: not everybody was told within a minute, or somebody twice before.
    """
    receiver.forget()
    committed, ids = ours.announce(DATA, range(ENDPOINTS))
    _all_of_them(receiver, "ours")
    delays = _delays(dict.fromkeys(ids, committed), receiver.arrivals())
    if delays.missing:
        raise RuntimeError(f"ours: {delays.missing} of {ENDPOINTS} did not come, others came twice")
    ours.wait_until_done(BURST_SECONDS)
    return ENDPOINTS / max(delays.seconds), delays


def burst_of(peer: Peer, receiver: Receiver) -> float:
    """The same with a peer: deliveries a second, by that of two ways of counting which is better for the peer.

    From when its news was there to the last arrival, or, because who enqueues takes time from who sends, only what
    came after the last message was enqueued over the time that took.

    :raises RuntimeError: not everybody was told within a minute.
    """
    receiver.forget()
    begin, enqueued = peer.announce(DATA)
    _all_of_them(receiver, type(peer).__name__)
    arrivals = [arrival.at for arrival in receiver.arrivals()]
    later = sum(at > enqueued for at in arrivals)
    whole = len(arrivals) / (max(arrivals) - begin)
    # Too few left say nothing.
    return max(whole, later / (max(arrivals) - enqueued)) if later >= ENDPOINTS / 2 else whole


def stream(ours: Ours, receiver: Receiver, seconds: float, patience: float, hanging: bool) -> Delays:
    """Tell some every now and then for so long; the delays of the deliveries to endpoints that answer.

    Just before, everybody is told of three things at once: where endpoints hang, that makes their calls pile up. What
    has not come ``patience`` seconds after the end does not count as come.
    """
    receiver.forget()
    receiver.hang(HANG_EVERY if hanging else 0, HANG_SECONDS)
    for _ in range(3):
        ours.announce(DATA, range(ENDPOINTS))
    told = 3 * sum(not hanging or _answers(place) for place in range(ENDPOINTS))
    receiver.wait_for(told, _BEFORE_SECONDS)
    sent: dict[str, float] = {}
    begin = time.monotonic()
    for number in range(round(seconds / STREAM_EVERY)):
        time.sleep(max(0.0, begin + number * STREAM_EVERY - time.monotonic()))
        places = [(number * STREAM_TO + place) % ENDPOINTS for place in range(STREAM_TO)]
        committed, ids = ours.announce(DATA, places)
        healthy = [name for place, name in zip(places, ids, strict=True) if not hanging or _answers(place)]
        sent |= dict.fromkeys(healthy, committed)
    receiver.wait_for(told + len(sent), patience)
    return _delays(sent, receiver.arrivals())


def _answers(place: int) -> bool:
    return place % HANG_EVERY != 0


def _all_of_them(receiver: Receiver, who: str) -> None:
    if not receiver.wait_for(ENDPOINTS, BURST_SECONDS):
        raise RuntimeError(f"{who}: {len(receiver.arrivals())} of {ENDPOINTS} came within {BURST_SECONDS:.0f} s")


def _delays(committed: dict[str, float], arrivals: Iterable[Arrival]) -> Delays:
    first: dict[str, Any] = {}
    for arrival in arrivals:
        first.setdefault(arrival.delivery, arrival.at)
    return Delays([first.get(name, math.inf) - at for name, at in committed.items()])
