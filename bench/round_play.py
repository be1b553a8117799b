"""One whole round of `bench.round`, played against a running coordinator, and what each of its phases took.

One rule: everything goes over HTTP, as for anybody else, but the clock: a deadline is moved to now as soon as what it
waits for is done, so that no second of a schedule is counted as work. A phase begins when its deadline is due, or with
the state before, and ends with the state it leads to, by the round's own timeline.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from multiprocessing.pool import AsyncResult, Pool
from pathlib import Path
from typing import Any

import psycopg2

from bench import round_clients as clients
from bench.round_memory import Watch
from deploy.coordinator import Coordinator
from deploy.demo_desk import Desk
from deploy.demo_screen import Screen
from player.coordinator import Coordinator as Operator
from protocol.timestamps import format_timestamp

PHASES = {
    "submit": "submit: tickets over HTTP, validated and stored; manifests",
    "seal": "seal: sealAt to SEALED (recounts, roots, archives)",
    "escrow": "escrow: SEALED to ESCROWED",
    "worst case": "worst case: SEALED to its being published",
    "draw": "draw: scheduledDrawTime to DRAWN (matching, prizes, root)",
    "settle": "settle: DRAWN to SETTLED (second tabulation, money)",
    "close": "close: SETTLED to CLOSED",
}
STAGES = ("seal_at", "sealing_deadline", "escrow_deadline", "scheduled_draw_time", "settle_at", "close_at")
_ORDER = ("OPEN", "SEALING", "SEALED", "ESCROWED", "DRAWN", "SETTLED", "CLOSED")
_NAMES = ("sealAt", "sealingDeadline", "escrowDeadline", "scheduledDrawTime", "settleAt", "closeAt")
_LOOK_EVERY = 0.01
_SLOWEST = 5_000
"""Tickets a second below which a phase counts as stuck, after its first minute."""


@dataclass
class Played:
    """A round that was played: seconds and CPU seconds by phase, bytes of memory by process and on disk by what."""

    tickets: int
    round_id: int = 0
    sellers: Sequence[clients.Seller] = ()
    own: tuple[float, float] = (0.0, 0.0)
    seconds: dict[str, float] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)
    memory: Mapping[str, int] = field(default_factory=dict)
    disk: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Stage:
    """What a round is played on. `operators`: id and API key of each."""

    running: Coordinator
    desk: Desk
    operators: Sequence[tuple[str, str]]
    pool: Pool
    watch: Watch
    screen: Screen
    folder: Path

    def round(self, round_id: int) -> dict[str, Any]:
        """The round as an admin sees it."""
        return self.desk.round(round_id)


def play(stage: Stage, tickets: int) -> Played:
    """Play a round with so many tickets in all.

    :raises RuntimeError: it fails, or stands still.
    """
    database = psycopg2.connect(stage.running.engines.database_url.replace("+psycopg2", ""))
    database.autocommit = True
    try:
        return _Round(stage, database, tickets).play()
    finally:
        database.close()


class _Round:
    """One round on its way."""

    def __init__(self, stage: Stage, database: Any, tickets: int) -> None:
        self._stage, self._database, self._played = stage, database, Played(tickets)
        self._due: dict[str, float] = {}
        self._seen: dict[str, float] = {}
        self._cpu: dict[str, float] = {}

    def play(self) -> Played:
        """From OPEN to CLOSED."""
        played, stage = self._played, self._stage
        self._open()
        self._make()
        stage.watch.reset()
        log = self._log_written()
        self._submit()
        self._let_be_due("seal", 0, 2)
        self._wait_for("ESCROWED", "recount")
        self._wait_for("PUBLISHED", "liability")
        self._reveal()
        self._let_be_due("draw", 2, 6)
        self._wait_for("DRAWN", "match")
        self._wait_for("SETTLED", "tabulate")
        self._wait_for("CLOSED", "")
        stage.watch.look()
        self._time()
        played.memory = dict(stage.watch.peaks)
        played.disk = self._sizes() | {"log (WAL), in all": self._log_written() - log}
        return played

    def _open(self) -> None:
        start = datetime.now(UTC)
        deadlines = {name: format_timestamp(start + timedelta(days=day)) for day, name in enumerate(_NAMES, 1)}
        stage = self._stage
        opened = stage.desk.open_round(deadlines)
        played, count = self._played, len(stage.operators)
        played.round_id = int(opened["id"])
        port = int(stage.running.env["PORT"])
        played.sellers = [
            clients.Seller(
                place,
                *who,
                port,
                played.round_id,
                played.tickets // count + (place < played.tickets % count),
                stage.folder / f"operator-{place}",
            )
            for place, who in enumerate(stage.operators)
        ]

    def _make(self) -> None:
        folder = self._stage.folder
        times = self._each(
            "operators make their tickets",
            clients.prepare,
            len(self._played.sellers),
            lambda: len([*folder.glob("*/manifest")]),
        )
        batches, roots = (sum(column) for column in zip(*times, strict=True))
        self._played.own = batches, roots

    def _submit(self) -> None:
        self._snapshot("submit")
        start = time.monotonic()
        self._each("tickets", clients.submit, self._played.tickets, self._stored)
        self._played.seconds["submit"] = time.monotonic() - start
        self._snapshot("submitted")

    def _stored(self) -> int:
        return int(self._ask("SELECT sum(ticket_count) FROM participations WHERE round_id = %s")[0])

    def _each(self, what: str, work: Callable[[clients.Seller], Any], total: int, done: Callable[[], int]) -> list[Any]:
        """What the operators do at once; `done` tells how much of `total` is."""
        doing: AsyncResult[list[Any]] = self._stage.pool.map_async(work, self._played.sellers, chunksize=1)
        shown = 0
        with self._stage.screen.counting(what, total) as advance:
            while not doing.ready():
                now = done()
                advance(now - shown)
                shown = now
                doing.wait(0.2)
        return doing.get()

    def _let_be_due(self, phase: str, first: int, end: int) -> None:
        """Let these deadlines be over."""
        self._snapshot(phase)
        moved = ", ".join(f"{name} = now()" for name in (*STAGES[first:end], "due_at", "ring_at"))
        [self._due[phase]] = self._ask(
            f"UPDATE rounds SET {moved} WHERE id = %s RETURNING extract(epoch FROM now())::float"
        )

    def _wait_for(self, wanted: str, kind: str) -> None:
        """Wait until the round is in this state or beyond, or its worst case PUBLISHED. `kind`: the work meanwhile."""
        give_up = time.monotonic() + 60 + self._played.tickets / _SLOWEST
        with self._stage.screen.waiting() as waiting:
            for look in itertools.count():
                state, published, now = self._ask(
                    "SELECT state::text, worst_case_usdc IS NOT NULL, extract(epoch FROM clock_timestamp())::float "
                    "FROM rounds WHERE id = %s"
                )
                if state == "FAILED" or time.monotonic() > give_up or self._stage.running.supervisor.wait(0):
                    raise RuntimeError(f"round {self._played.round_id} is {state}, and never came to be {wanted}")
                if published if wanted == "PUBLISHED" else _ORDER.index(state) >= _ORDER.index(wanted):
                    self._seen[wanted] = now
                    self._snapshot(wanted)
                    return
                if look % 20 == 0:
                    waiting(f"{self._played.tickets:,} tickets: the round is {state}{self._pieces(kind)}")
                time.sleep(_LOOK_EVERY)

    def _pieces(self, kind: str) -> str:
        planned, left = self._ask(
            "SELECT count(*), count(due_at) FROM round_pieces WHERE round_id = %s AND kind = %s", kind
        )
        return f", {kind}: {planned - left} of {planned} pieces" if planned else ""

    def _reveal(self) -> None:
        for seller in self._played.sellers:
            with Operator(self._stage.running.base_url, seller.api_key) as operator:
                operator.reveal_nonce(seller.round_id, seller.nonce)

    def _time(self) -> None:
        timeline = self._stage.round(self._played.round_id)["timeline"]
        # Of each state the first step that led to it.
        at = {step["state"]: datetime.fromisoformat(step["at"]).timestamp() for step in reversed(timeline)}
        self._played.seconds |= {
            "seal": at["SEALED"] - self._due["seal"],
            "escrow": at["ESCROWED"] - at["SEALED"],
            "worst case": self._seen["PUBLISHED"] - at["SEALED"],
            "draw": at["DRAWN"] - self._due["draw"],
            "settle": at["SETTLED"] - at["DRAWN"],
            "close": at["CLOSED"] - at["SETTLED"],
        }
        cpu = self._cpu
        self._played.cpu = {
            "submit": cpu["submitted"] - cpu["submit"],
            "seal": cpu["ESCROWED"] - cpu["seal"],
            "worst case": cpu["PUBLISHED"] - cpu["ESCROWED"],
            "draw": cpu["DRAWN"] - cpu["draw"],
            "settle": cpu["CLOSED"] - cpu["DRAWN"],
        }

    def _sizes(self) -> dict[str, int]:
        """Bytes on disk of what the round left."""
        table = f"tickets_r{self._played.round_id}"
        rows, index = self._ask(
            f"SELECT pg_table_size('{table}'), pg_indexes_size('{table}') FROM rounds WHERE id = %s"
        )
        archives = self._ask("SELECT sum(bytes) FROM ticket_archives WHERE round_id = %s")[0]
        # Its share of tables that hold those of all rounds.
        whole = (
            "SELECT pg_total_relation_size('{0}') * count(*) FILTER (WHERE round_id = %s) / greatest(1, count(*)) "
            "FROM {0}"
        )
        chunks, winners = (int(self._ask(whole.format(name))[0]) for name in ("ticket_chunks", "winners"))
        return {
            "rows": rows,
            "index": index,
            "archives": int(archives),
            "chunks of the tree": chunks,
            "winners, with indexes": winners,
        }

    def _log_written(self) -> int:
        return int(self._ask("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') FROM rounds WHERE id = %s")[0])

    def _snapshot(self, step: str) -> None:
        self._cpu[step] = self._stage.watch.cpu()

    def _ask(self, statement: str, *values: Any) -> Any:
        with self._database.cursor() as cursor:
            cursor.execute(statement, (self._played.round_id, *values))
            return cursor.fetchone()
