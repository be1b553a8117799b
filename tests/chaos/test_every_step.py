"""A round whose workers are killed with -9 at every step, from the end of sales to CLOSED: it has the seed, the winners
and the balances that were settled beforehand, and those of a twin that nobody killed.

Nothing steers the draw. The round and its twin are copies of one open round, with one secret of its own, under a clock
that stands still and is moved from deadline to deadline: what they do after that must be the same to the last byte.

The one rule kept here: where workers die is not written down anywhere. Each bell is answered by workers that die one
place later each time (``tests.mortal``), until one comes through. In `make test` they die at some of the places, in
`make chaos` at every single one.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta

import pytest

from models.encryption import decrypt
from models.session import engine
from protocol.numbers import Numbers, draw_numbers, tiers_won
from protocol.rules import Rules
from protocol.seed import COMMIT_REVEAL, draw_seed, nonce_commit
from protocol.settlement import Settlement, Stake, Winner, settle, settlement_hash, settlement_proof, winners_root
from tasks.pieces import do_piece
from tasks.rounds import advance_once
from tests.factories import PRICE, STAGES, a_round, an_operator, manifest, some_tickets, submit
from tests.mortal import AFTER_COMMIT, SHARD, Workers, workers
from tests.polling import until
from tests.tables import Database, database_at

RULES = Rules(
    ticket_price=PRICE,
    odds_range=60,
    fee_bps=500,
    commission_bps=1_000,
    reserve_bps=400,
    winner_bonus_bps=1_000,
    prizes=(250_000, 10_000, 1_000, 100, 50),
    ranges=(50, 40, 30, 20, 10),
)
"""Odds by which some of these tickets surely win in every tier, and most of them nothing."""
SOLD = {"op_a": 4_200, "op_b": 250, "op_c": 60, "op_d": 60, "op_e": 40}
"""``a`` has two chunks and reveals its nonce, ``b`` pays with its last money and keeps its nonce. ``c`` misses
escrow, the manifest of ``d`` is wrong, and ``e`` has none.
"""
IN_THE_DRAW = ("op_a", "op_b")
NONCE = bytes(range(32))
Bell = tuple[str, int]
State = dict[str, str]


@pytest.fixture
def opened(house: None, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Round 1, with all its tickets and manifests, whose sales are not over yet."""
    monkeypatch.setattr("tasks.opening.current_rules", lambda cumulative: RULES)
    monkeypatch.setattr("models.matching.SMALL", SHARD)
    funds = {"op_a": 10**12 + 1, "op_b": SOLD["op_b"] * PRICE + 7, "op_c": SOLD["op_c"] * PRICE - 1}
    operators = [an_operator(name.removeprefix("op_"), funds.get(name, 10**12)) for name in SOLD]
    round_id = a_round(operators)
    for seed, (operator_id, count) in enumerate(SOLD.items()):
        submit(round_id, operator_id, some_tickets(count, seed, RULES.number_ranges))
    for operator_id in IN_THE_DRAW:
        manifest(round_id, operator_id, nonceCommit=nonce_commit(round_id, operator_id, NONCE))
    manifest(round_id, "op_c")
    manifest(round_id, "op_d", ticketsRoot="0" * 64)


@dataclass(frozen=True)
class Expected:
    """What the protocol says of the round, before it is drawn."""

    seed: str
    winners: set[tuple[str, str, int, int]]
    root: str
    settlement: Settlement
    settlement_hash: str

    @classmethod
    def of(cls, database: Database) -> Expected:
        """From what is on record of a round that is ESCROWED."""
        [(state, anchor, effective, secret)] = database.rows(
            "SELECT state, chained_anchor_hash, effective_manifest_hash, secret_encrypted FROM rounds"
        )
        assert state == "ESCROWED"
        seed = draw_seed(1, COMMIT_REVEAL, anchor, effective, decrypt(bytes(secret)), {"op_a": NONCE}, None)
        numbers = draw_numbers(seed, RULES.number_ranges)
        wins = _wins(numbers)
        counts = {name: [sum(win[::2] == (name, tier) for win in wins) for tier in range(6)] for name in IN_THE_DRAW}
        settled = settle(RULES, [Stake(name, SOLD[name]) for name in IN_THE_DRAW], counts, 0, 0)
        paid = {(name, ticket, tier, settled.prize_of(tier)) for name, ticket, tier in wins}
        root = winners_root(1, [Winner(tier, name, ticket, prize) for name, ticket, tier, prize in paid])
        totals = [sum(each) for each in zip(*counts.values(), strict=True)]
        proof = settlement_proof(1, anchor, effective, seed, numbers, totals, root, settled.terms)
        return cls(seed, paid, root, settled, settlement_hash(proof))

    def hold(self, database: Database) -> None:
        """Find exactly this in the tables of the round when it is CLOSED."""
        assert database.rows("SELECT draw_seed, winners_root FROM draws") == [(self.seed, self.root)]
        assert database.rows("SELECT state, settlement_hash FROM rounds") == [("CLOSED", self.settlement_hash)]
        found = database.rows("SELECT operator_id, ticket_id, tier, prize_usdc FROM winners")
        assert set(found) == self.winners
        assert len(found) == len(self.winners)
        assert {tier for *_, tier, _ in found} == set(range(6))
        terms, releases = self.settlement.terms, self.settlement.releases
        balances = Counter(dict(database.rows("SELECT id, balance FROM ledger_accounts")))  # type: ignore[arg-type]
        assert sum(balances.values()) == 0
        del balances["external"]
        assert balances == Counter(  # an account that nothing came to need not be there
            {
                "pool": terms.pool1,
                "reserve": terms.reserve1,
                "fee": terms.feeKept,
                "escrow:1": 0,
                "operator:op_a": 10**12 + 1 - SOLD["op_a"] * PRICE + releases["op_a"].total,
                "operator:op_b": 7 + releases["op_b"].total,
                "operator:op_c": SOLD["op_c"] * PRICE - 1,
                "operator:op_d": 10**12,
                "operator:op_e": 10**12,
            }
        )


def _wins(numbers: Numbers) -> list[tuple[str, str, int]]:
    return [
        (name, ticket[0], tier)
        for seed, name in enumerate(SOLD)
        if name in IN_THE_DRAW
        for ticket in some_tickets(SOLD[name], seed, RULES.number_ranges)
        for tier in tiers_won(ticket[1:7], numbers)
    ]


def play(database: Database, answer: Callable[[Bell], None]) -> Expected:
    """Take the round from deadline to deadline, ringing for what is due until nothing comes of it any more."""
    [deadlines] = database.rows(f"SELECT {', '.join(STAGES)} FROM rounds")
    expected = None
    for stage, deadline in zip(STAGES, deadlines, strict=True):
        if stage == "scheduled_draw_time":
            expected = Expected.of(database)
        database.move_clock(deadline + timedelta(seconds=1))
        before: State = {}
        while before != (before := database.everything()):
            for bell in due(database):
                answer(bell)
        if stage == "sealing_deadline":
            database.rows("UPDATE participations SET nonce = %s WHERE operator_id = 'op_a'", NONCE)
    assert expected is not None
    return expected


def due(database: Database) -> Iterator[Bell]:
    """The bells that a scheduler would ring now: of the round, and then of the pieces there are."""
    for bell, table in (("advance_round", "rounds"), ("do_piece", "round_pieces")):
        found = database.rows(f"SELECT id FROM {table} WHERE due_at <= (SELECT at FROM still.clock) ORDER BY id")
        yield from ((bell, row_id) for (row_id,) in found)


def play_unharmed(database: Database) -> list[State]:
    """The twin, in this process; returns everything as it was, from change to change."""
    states: list[State] = []

    def look() -> None:
        if (now := database.everything()) not in states[-1:]:
            states.append(now)

    def answer(bell: Bell) -> None:
        step = {"advance_round": advance_once, "do_piece": do_piece}[bell[0]]
        look()
        while step(bell[1]):
            look()
        look()

    play(database, answer).hold(database)
    return states


class Reaper:
    """Kills whoever works: at every place, or at about one in ``every``."""

    def __init__(self, database: Database, house: Workers, states: list[State], every: int, seed: int) -> None:
        self.deaths: Counter[str] = Counter()
        self._database, self._house, self._states, self._every = database, house, states, every
        self._chance = random.Random(seed)
        self._at = 0

    def answer(self, bell: Bell) -> None:
        """Let workers answer a bell until one survives it."""
        self._look("nobody's death")
        place = self._step()
        while (death := self._house.answer(*bell, dies_at=place).place) is not None:
            self.deaths[f"{bell[0]}, {death}"] += 1
            until(lambda: not self._database.sessions(), what="the dead worker's session to end")
            steps = self._look(death)
            assert self._every > 1 or steps <= (death == AFTER_COMMIT)
            place = self._step() + (0 if steps else place)

    def _step(self) -> int:
        return self._chance.randint(1, 2 * self._every - 1)

    def _look(self, death: str) -> int:
        """How many changes further everything is. It must be as the twin was once, and never goes back."""
        before, now = self._at, self._database.everything()
        for at in range(before, len(self._states)):
            if self._states[at] == now:
                self._at = at
                return at - before
        changed = [name for name, rows in self._states[before].items() if now[name] != rows]
        raise AssertionError(f"the twin was never like this; what changed by {death}: {', '.join(changed)}")


@pytest.mark.usefixtures("opened")
@pytest.mark.parametrize(
    "every",
    [pytest.param(15, id="some"), pytest.param(1, id="all", marks=[pytest.mark.chaos, pytest.mark.timeout(600)])],
)
def test_a_round_killed_at_every_step_is_the_round_that_was_not(
    database: str,
    copied: Callable[[str], AbstractContextManager[str]],
    every: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    seed = int(os.environ.get("HYPOTHESIS_SEED", "1"))
    engine().dispose()
    with database_at(database) as twin:
        [(opened_at,)] = twin.rows("SELECT created_at FROM rounds")
        twin.stop_the_clock(opened_at)
    with copied(database) as copy, database_at(database) as twin, database_at(copy) as struck:
        struck.stop_the_clock(opened_at)
        assert struck.everything() == twin.everything()
        states = play_unharmed(twin)
        with workers(copy) as house:
            reaper = Reaper(struck, house, states, every, seed)
            expected = play(struck, reaper.answer)
        died = sum(reaper.deaths.values())
        with capsys.disabled():
            print(f" [seed {seed}: {died} workers killed at {len(reaper.deaths)} kinds of places] ", end="")
        expected.hold(struck)
        assert struck.everything() == twin.everything()
        shards = struck.rows("SELECT count(*) FROM round_pieces WHERE kind = 'match'")[0][0]
        chunks = struck.rows("SELECT count(*) FROM ticket_chunks WHERE operator_id = 'op_a'")[0][0]
    assert (shards > 1, chunks) == (True, 2)
    assert died > 300 // every
