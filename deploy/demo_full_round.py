"""The round of the full demo: players come, buy, and claim what they won.

One rule: no draw is steered. That the lower tiers have winners is made sure of by the tickets: together they have every
bonus5 number many times, and every bonus4 number. They are dealt like cards, so that the first two of every player
have every bonus5 number already, however slow the rest are sold.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any

import requests

from deploy.demo_books import Operator
from deploy.demo_player import PRICE, Numbers, Player
from deploy.demo_screen import Screen
from deploy.failure import Failure
from deploy.processes import here
from protocol.prizes import TIERS
from protocol.timestamps import format_timestamp

PLAYERS = 25
"""Of each operator."""
TICKETS = 500
"""Of each operator. A thousand in a row have every bonus4 number."""
_BONUS4, _BONUS5 = (tier.range for tier in TIERS[-2:])
_LIMIT, _UNTIL_EXCLUDED = 5, 10
_SPARE = 7 * PRICE
_STAGES = {"sealingDeadline": 2.0, "escrowDeadline": 2.0, "scheduledDrawTime": 4.0, "settleAt": 2.0, "closeAt": 2.0}
_REQUESTS_OF_A_REGISTRATION = 5


@dataclass(frozen=True)
class Pace:
    """How long a round sells, in seconds: `shortest`, or `margin` times what the sales should take, if that is more.

    `lead` is how long before `sealAt` the nodes stop selling and send what they sold. A worker that is killed twice in
    a row is away for some ten seconds of it.
    """

    lead: float
    shortest: float
    margin: float


PACE = Pace(lead=10.0, shortest=30.0, margin=3.0)
UNDER_FIRE = Pace(lead=25.0, shortest=45.0, margin=4.0)
"""When a node's processes are killed all the time."""
_LONGEST = 240.0


def register(operators: Sequence[Operator], variant: str) -> float:
    """Every player opens an account and pays in; the seconds that took."""
    began = time.monotonic()
    for operator in operators:
        names = [f"{operator.name.lower()}-{variant}-{number}" for number in range(PLAYERS)]
        operator.players = [Player(operator.node.base_url, name) for name in names]
    _all(_come, [(player, quota) for one in operators for player, quota in zip(one.players, _quotas(), strict=True)])
    return time.monotonic() - began


def open_and_sell(
    operators: Sequence[Operator], url: str, admin_key: str, seed: int, pace: Pace, registering: float, screen: Screen
) -> int:
    """Open a round that sells for as long as this machine needs, and have every player buy; the round's id."""
    tickets = TICKETS * len(operators)
    # What a request costs here was just seen; a purchase costs about as much.
    each = registering / (PLAYERS * len(operators) * _REQUESTS_OF_A_REGISTRATION)
    selling = min(_LONGEST, max(pace.shortest, pace.margin * tickets * each)) + pace.lead
    moment = datetime.now(UTC) + timedelta(seconds=selling)
    deadlines = {"sealAt": format_timestamp(moment)}
    for name, seconds in _STAGES.items():
        moment += timedelta(seconds=seconds)
        deadlines[name] = format_timestamp(moment)
    answer = here.post(
        f"{url}/api/admin/rounds", json=deadlines, headers={"X-Service-Admin-Key": admin_key}, timeout=30
    )
    if not answer.ok:
        raise Failure(f"the round cannot be opened: {answer.status_code} {answer.text[:300]}")
    round_id = int(answer.json()["id"])
    screen.step(f"round {round_id} is OPEN, and sells for {selling:.0f} s")
    began = time.monotonic()
    for operator in operators:
        first = operator.players[0]
        first.wait_for(first.sees_a_round, f"{operator.name} does not sell the round")
    players = list(chain.from_iterable(operator.players for operator in operators))
    _all(_shop, list(zip(players, _deal(seed, len(operators)), strict=True)))
    sold = sum(operator.tickets for operator in operators)
    seconds = time.monotonic() - began
    screen.step(f"{sold:,} tickets bought in {seconds:.0f} s ({sold / seconds:.0f} a second)")
    if sold < tickets:
        screen.step(f"sales were over before all {tickets:,} were sold: this machine is slower than it seemed")
    if len({numbers[-1] for player in players for numbers in player.tickets.values()}) < _BONUS5:
        raise Failure("too few tickets were sold for tier 5 to have winners for sure: this machine is too slow")
    return round_id


def draw_and_claim(operators: Sequence[Operator], url: str, round_id: int, screen: Screen) -> None:
    """Watch the round until it is CLOSED, and have every player claim and withdraw."""
    public = f"{url}/api/public/rounds/{round_id}"
    _until(lambda: _read(public)["state"] in ("SETTLED", "CLOSED", "FAILED"), "the round is not settled", 300.0)
    if _read(public)["state"] == "FAILED":
        raise Failure(f"the round failed: {_read(public)['failureReason']}")
    draw = _read(f"{url}/api/public/draw/{round_id}")
    drawn = [draw[name] for name in ("jackpotNumber", *(f"bonus{place}" for place in range(1, 6)))]
    tiers = _read(f"{url}/api/public/sub-prizes/{round_id}")["tiers"]
    pays = {tier["tier"]: int(tier["totalPayout"]) // max(1, tier["winnerCount"]) for tier in tiers}
    pays[0] = int(draw["jackpotAmount"]) // max(1, draw["jackpotWinnerCount"])
    counts = ", ".join(f"tier {tier['tier']}: {tier['winnerCount']}" for tier in tiers)
    screen.step(f"drawn and settled; winners by {counts}")
    if not tiers[4]["winnerCount"]:
        raise Failure("nobody won in tier 5, which cannot be")
    players = [player for operator in operators for player in operator.players]
    _all(_collect, [(player, drawn, pays) for player in players])
    screen.step(f"{sum(len(player.won) for player in players)} prizes claimed, and money withdrawn")
    _until(lambda: _read(public)["state"] == "CLOSED", "the round is not CLOSED", 120.0)
    for operator in operators:
        _until(
            lambda: operator.staff(f"rounds/{round_id}")["stage"] == "done",  # noqa: B023 - used before the next turn
            f"{operator.name} is not done with the round",
            120.0,
        )
    screen.step(f"round {round_id} is CLOSED, and both nodes are done with it")


def _quotas() -> list[int]:
    """How many tickets each player of an operator buys: one limits herself, one excludes herself, one spends all."""
    others = PLAYERS - 2
    share, rest = divmod(TICKETS - _LIMIT - _UNTIL_EXCLUDED, others)
    return [_LIMIT, _UNTIL_EXCLUDED, *(share + (place < rest) for place in range(others))]


def _deal(seed: int, operators: int) -> list[list[Numbers]]:
    """The tickets that each player will buy, one player after the other; all are to be had again from the seed."""
    pick = random.Random(seed)  # noqa: S311 - play tickets
    quotas = _quotas() * operators
    hands: list[list[Numbers]] = [[] for _ in quotas]
    place = seed
    while wanting := [hand for hand, quota in zip(hands, quotas, strict=True) if len(hand) < quota]:
        for hand in wanting:
            hand.append(
                (
                    pick.randint(1, 10_000_000), pick.randint(1, 1_000_000), pick.randint(1, 100_000),
                    place % TIERS[2].range + 1, place % _BONUS4 + 1, place % _BONUS5 + 1,
                )
            )  # fmt: skip
            place += 1
    return hands


def _come(player: Player, quota: int) -> None:
    player.register()
    # Who spends everything has not a micro-USDC more than her tickets cost.
    player.deposit(quota * PRICE + (0 if player.name.endswith("-2") else _SPARE))
    if player.name.endswith("-0"):
        player.limit_to(_LIMIT)


def _shop(player: Player, hand: list[Numbers]) -> None:
    if not all(player.buy(numbers) for numbers in hand):
        return
    if player.name.endswith("-0"):
        player.is_refused(hand[0], "limit_reached")
    if player.name.endswith("-1"):
        player.exclude_herself()
        player.is_refused(hand[0], "self_excluded")
    if player.name.endswith("-2"):
        player.is_refused(hand[0], "insufficient_funds")


def _collect(player: Player, drawn: Sequence[int], pays: dict[int, int]) -> None:
    player.claim(player.reckon(drawn, pays))
    if player.balance:
        player.withdraw(player.balance // 2 or player.balance)


def _all(work: Callable[..., None], things: Sequence[tuple[Any, ...]]) -> None:
    # All at once: a player who had to wait for her turn might find the sales over.
    with ThreadPoolExecutor(len(things)) as pool:
        for done in [pool.submit(work, *each) for each in things]:
            done.result()


def _read(url: str) -> dict[str, Any]:
    answer: dict[str, Any] = here.get(url, timeout=30).json()
    return answer


def _until(condition: Callable[[], bool], otherwise: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            if condition():
                return
        except (requests.RequestException, Failure, KeyError):
            pass  # a node that is just being killed: it answers again
        if time.monotonic() > deadline:
            raise Failure(otherwise)
        time.sleep(0.5)
