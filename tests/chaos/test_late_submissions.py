"""A thousand submissions around sealAt: each is under the sealed root with all its tickets, or refused whole.

One rule: nothing is held up or arranged. The real web processes, worker and scheduler meet the moment as it comes, and
what happened is read from the answers and then from what is public.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import local
from typing import Any

import pytest
import requests

from deploy.coordinator import Coordinator, coordinator
from deploy.data_folder import throw_away
from deploy.sandbox import admin_key, operator
from models.tickets import Ticket
from protocol.tickets import ticket_line, tickets_root
from tests.chaos.playing import LABELS, RANGES, STAGES, Lottery
from tests.polling import until

SUBMISSIONS = 1_000
THREADS = 12
MANIFESTS_AT = (-9.0, -1.0, -0.5, -0.2, 0.0, None)
"""Seconds after sealAt: one operator in good time, others closer and closer, one never."""
BEFORE, AFTER = 4.0, 0.7
"""Seconds around sealAt over which the submissions are spread."""
SEAL_AFTER = 8.0


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Coordinator]:
    clean = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    with throw_away() as folder, coordinator(folder, log_dir=tmp_path, environ=clean) as started:
        yield started


@dataclass
class Seller:
    """An operator, what it was told of each batch, and of its manifest (None: it sent none)."""

    id: str
    key: str
    told: list[tuple[list[Ticket], int, str]] = field(default_factory=list)
    manifest: tuple[int, str] | None = None

    @property
    def accepted(self) -> set[Ticket]:
        return {ticket for batch, status, _ in self.told if status == 200 for ticket in batch}


class Market:
    """One round, and sellers that send to it from many threads, each over a connection of its own."""

    def __init__(self, lottery: Lottery, sellers: list[Seller]) -> None:
        self.lottery, self.sellers, self._own = lottery, sellers, local()
        moments = [datetime.now(UTC) + timedelta(seconds=SEAL_AFTER + after) for after in (0, 60, 61, 62, 600, 601)]
        body = {stage: moment.isoformat() for stage, moment in zip(STAGES, moments, strict=True)}
        self.round_id = int(lottery.post("/api/admin/rounds", body)["id"])
        self.seal_at = moments[0].timestamp()

    def wait_for(self, moment: float) -> None:
        """Wait until so many seconds after sealAt; not at all if that is over."""
        until(lambda: time.time() >= self.seal_at + moment, within=60)

    def sell(self, seller: Seller, batch: list[Ticket]) -> None:
        """Send a batch and note what came of it."""
        tickets = [dict(zip(("ticketId", *LABELS, "isQuickPick"), ticket, strict=True)) for ticket in batch]
        answer = self._post("tickets", seller, {"tickets": tickets})
        seller.told.append((batch, answer.status_code, answer.json().get("code", "")))

    def seal(self, seller: Seller) -> None:
        """Send a manifest until it fits what is on record, or is too late."""
        count = len(seller.accepted)
        while True:
            text = json.dumps({"roundId": self.round_id, "ticketCount": count})
            digest = hashlib.sha256(text.encode()).hexdigest()
            answer = self._post(
                "manifest", seller, {"manifestJson": text, "manifestHash": digest, "ticketCount": count}
            )
            seller.manifest = answer.status_code, answer.json().get("code", "")
            if seller.manifest != (422, "manifest_mismatch"):
                return
            count = int(answer.json()["details"]["ticketCount"][0].split()[0])

    def _post(self, path: str, seller: Seller, body: dict[str, Any]) -> requests.Response:
        if not hasattr(self._own, "session"):
            self._own.session = requests.Session()
        url = f"{self.lottery.url}/api/operator/{path}"
        body = {"roundId": self.round_id} | body
        answer: requests.Response = self._own.session.post(url, json=body, headers={"X-Service-Key": seller.key})
        return answer


def furnish(running: Coordinator) -> tuple[Lottery, list[Seller]]:
    key = admin_key(running, "market")
    made = [operator(running.base_url, key, f"Operator {place}") for place in range(len(MANIFESTS_AT))]
    sellers = [Seller(one["operatorId"], one["apiKey"]) for one in made]
    servers = running.engines
    keys = {seller.id: seller.key for seller in sellers}
    return Lottery(running.base_url, servers.database_url, servers.redis_url, key, keys), sellers


def some_batches(chance: random.Random, sellers: list[Seller]) -> list[tuple[float, Seller, list[Ticket]]]:
    """When who sends what, in order of time. Now and then somebody sends again what it has sent before."""
    planned: list[tuple[float, Seller, list[Ticket]]] = []
    for place, moment in enumerate(sorted(chance.uniform(-BEFORE, AFTER) for _ in range(SUBMISSIONS))):
        # The first of everybody comes in good time.
        seller = sellers[place] if place < len(sellers) else chance.choice(sellers)
        batch: list[Ticket] = [
            (f"t-{place}-{number}", *(chance.randint(1, top) for top in RANGES), chance.random() < 0.5)  # type: ignore[misc]
            for number in range(chance.randint(1, 20))
        ]
        before = [earlier for _, who, earlier in planned if who is seller]
        if before and chance.random() < 0.05:
            batch = chance.choice(before)
        planned.append((moment if place >= len(sellers) else -SEAL_AFTER, seller, batch))
    return planned


@pytest.mark.chaos
def test_a_thousand_submissions_around_seal_at_are_sealed_whole_or_refused_whole(running: Coordinator) -> None:
    seed = int(os.environ.get("HYPOTHESIS_SEED", "1"))
    print(f"seed {seed} (HYPOTHESIS_SEED=… replays it)")
    lottery, sellers = furnish(running)
    planned = some_batches(random.Random(seed), sellers)
    market = Market(lottery, sellers)

    def submit(one: tuple[float, Seller, list[Ticket]]) -> None:
        market.wait_for(one[0])
        market.sell(*one[1:])

    def bind(seller: Seller, moment: float) -> None:
        market.wait_for(moment)
        market.seal(seller)

    with ThreadPoolExecutor(THREADS) as pool, ThreadPoolExecutor(len(sellers)) as binders:
        first = [pool.submit(submit, one) for one in planned[: len(sellers)]]
        for done in first:
            done.result()
        bound = [
            binders.submit(bind, seller, moment)
            for seller, moment in zip(sellers, MANIFESTS_AT, strict=True)
            if moment is not None
        ]
        for done in [*bound, *(pool.submit(submit, one) for one in planned[len(sellers) :])]:
            done.result()

    tally = Counter(told[1:] for seller in sellers for told in seller.told)
    print(dict(tally), {seller.id: seller.manifest for seller in sellers})
    assert sum(tally.values()) == SUBMISSIONS
    assert set(tally) == {(200, ""), (409, "sales_ended"), (409, "manifest_submitted")}
    assert sellers[0].manifest == (200, "")
    assert {seller.manifest for seller in sellers} <= {(200, ""), (409, "sales_ended"), None}
    until(lambda: lottery.get(f"/api/public/rounds/{market.round_id}")["state"] == "SEALING", 30, "no more sold")
    for seller in sellers:
        assert_on_record_is_what_was_accepted(market, seller)
    draw_now(market)
    until(lambda: lottery.get(f"/api/public/rounds/{market.round_id}")["state"] == "DRAWN", 30, "drawn")
    assert_sealed_is_what_was_accepted(market)


def draw_now(market: Market) -> None:
    """Let the deadlines up to the draw be over."""
    with market.lottery.connect() as connection, connection.cursor() as cursor:
        past = ", ".join(f"{name} = now()" for name in ("sealing_deadline", "escrow_deadline", "scheduled_draw_time"))
        cursor.execute(f"UPDATE rounds SET {past}, due_at = now(), ring_at = now() WHERE id = %s", [market.round_id])
    connection.close()


def assert_on_record_is_what_was_accepted(market: Market, seller: Seller) -> None:
    """Of whoever has a manifest or none: every ticket of an accepted batch, and none of a refused one."""
    found = market.lottery.rows(
        "SELECT ticket_id, jackpot_number, bonus1, bonus2, bonus3, bonus4, bonus5, is_quick_pick FROM tickets "
        "WHERE round_id = %s AND operator_id = %s",
        market.round_id,
        seller.id,
    )
    assert set(found) == seller.accepted
    assert len(found) == len(seller.accepted)


def assert_sealed_is_what_was_accepted(market: Market) -> None:
    """What is public is each accepted ticket of every operator with a manifest, under the root it was sealed with."""
    path = f"/api/public/rounds/{market.round_id}"
    proof, shown = market.lottery.get(f"{path}/proof"), market.lottery.get(path)
    sealed = {entry["operatorId"]: entry for entry in proof["manifests"]}
    with_manifest = [seller for seller in market.sellers if seller.manifest == (200, "")]
    assert set(sealed) == {seller.id for seller in with_manifest}
    assert set(shown["excludedOperatorIds"]) == {seller.id for seller in market.sellers} - set(sealed)
    for seller in with_manifest:
        expected = sorted(ticket_line(market.round_id, seller.id, *ticket) for ticket in seller.accepted)
        lines = requests.get(f"{market.lottery.url}{path}/tickets/{seller.id}", timeout=30).content.splitlines()
        assert sorted(lines) == expected
        entry = sealed[seller.id]
        assert (entry["ticketCount"], entry["ticketsRoot"]) == (len(lines), tickets_root(lines))
    assert int(shown["totalTickets"]) == sum(len(seller.accepted) for seller in with_manifest)
