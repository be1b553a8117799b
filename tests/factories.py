"""What tests of the house build in a line: operators, rounds, tickets, manifests, and a clock that can be moved.

One rule: everything goes the way it goes in production (the same functions, the same transactions), except time,
which is moved by writing deadlines into the round's row.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import select, text

from models.deposits import deposit
from models.operators import Operator
from models.participation import Manifest, Participation
from models.rounds import Round, note_event
from models.session import transaction
from models.tickets import Ticket, add_tickets
from models.work import Piece
from protocol.lifecycle import Deadlines, State
from protocol.rules import Rules
from tasks.opening import open_round
from tasks.pieces import do_piece
from tasks.rounds import advance_once, advance_round

STAGES = ("seal_at", "sealing_deadline", "escrow_deadline", "scheduled_draw_time", "settle_at", "close_at")
RANGES = (10_000_000, 1_000_000, 100_000, 10_000, 1_000, 100)
PRICE = 3_000_000
GENEROUS = Rules(
    ticket_price=PRICE,
    odds_range=3,
    fee_bps=500,
    commission_bps=1_000,
    reserve_bps=400,
    winner_bonus_bps=1_000,
    prizes=(250_000, 10_000, 1_000, 100, 50),
    ranges=(4, 4, 3, 3, 2),
)
"""Odds so good that every tier surely has winners among some dozens of tickets."""


def an_operator(name: str, funds: int = 10**12) -> str:
    """An active operator `op_<name>` with so many micro-USDC."""
    operator_id = f"op_{name}"
    with transaction() as session:
        session.add(Operator(id=operator_id, name=name, jurisdiction="Malta", address=f"0x{'0' * 40}"))
    if funds:
        fund(operator_id, funds)
    return operator_id


def fund(operator_id: str, amount: int, reference: str = "first") -> None:
    """Record a deposit."""
    with transaction() as session:
        deposit(session, operator_id, amount, reference)


def some_operators(count: int) -> list[str]:
    """So many funded operators: op_a, op_b, …"""
    return [an_operator(chr(ord("a") + place)) for place in range(count)]


def a_round(operator_ids: Sequence[str]) -> int:
    """An OPEN round that invites these operators and seals in an hour."""
    start = datetime.now(UTC)
    with transaction() as session:
        return open_round(session, operator_ids, Deadlines(*(start + timedelta(hours=n) for n in range(1, 7)))).id


def some_tickets(count: int, seed: int = 1, ranges: Sequence[int] = RANGES) -> list[Ticket]:
    """So many tickets t-0, t-1, … with numbers from the seed."""
    pick = random.Random(seed).randint
    return [
        (f"t-{place}", *(pick(1, top) for top in ranges), place % 2 == 0)  # type: ignore[misc]
        for place in range(count)
    ]


def submit(round_id: int, operator_id: str, batch: Sequence[Ticket]) -> None:
    """Put tickets on record as the API does."""
    with transaction() as session:
        part = session.get_one(Participation, (round_id, operator_id))
        part.ticket_count += add_tickets(session, round_id, operator_id, batch)


def manifest(round_id: int, operator_id: str, **claims: Any) -> None:
    """Put a manifest on record that claims these things."""
    with transaction() as session:
        part = session.get_one(Participation, (round_id, operator_id))
        written = json.dumps({"roundId": round_id, **claims})
        session.add(
            Manifest(
                round_id=round_id,
                operator_id=operator_id,
                manifest_json=written,
                manifest_hash=hashlib.sha256(written.encode()).hexdigest(),
                ticket_count=part.ticket_count,
                tickets_root=claims.get("ticketsRoot"),
                nonce_commit=claims.get("nonceCommit"),
            )
        )
        note_event(
            session,
            round_id,
            "MANIFEST_SUBMITTED",
            {"operatorId": operator_id, "ticketCount": part.ticket_count},
        )


def take_part(round_id: int, operator_ids: Iterable[str], tickets: int = 30, seed: int = 0) -> None:
    """Every operator submits so many tickets, each different, and a manifest. Theirs are the seeds from this one on."""
    ranges = the_round(round_id).parsed_rules.number_ranges
    for own_seed, operator_id in enumerate(operator_ids, seed):
        submit(round_id, operator_id, some_tickets(tickets, own_seed, ranges))
        manifest(round_id, operator_id)


def a_played_round(operator_ids: Sequence[str], state: State, tickets: int = 30, seed: int = 0) -> int:
    """A round in which they all took part, as far as ``state``."""
    round_id = a_round(operator_ids)
    take_part(round_id, operator_ids, tickets, seed)
    take_to(round_id, state)
    return round_id


def move_clock_to(round_id: int, stage: str) -> None:
    """Let the deadlines up to and including `stage` be over, and the others an hour away."""
    past = STAGES[: STAGES.index(stage) + 1]
    sets = [f"{name} = now() - interval '1 minute'" for name in past]
    sets += [f"{name} = now() + interval '1 hour'" for name in STAGES if name not in past]
    with transaction() as session:
        session.execute(
            text(f"UPDATE rounds SET {', '.join(sets)}, due_at = now(), ring_at = now() WHERE id = {round_id}")
        )


def let_claims_end(round_id: int) -> None:
    """Let the deadline for claiming the prizes of a settled round be over."""
    with transaction() as session:
        for table, column in (("winners", "claim_deadline"), ("expiries", "expires_at")):
            session.execute(text(f"UPDATE {table} SET {column} = clock_timestamp() WHERE round_id = {round_id}"))


def work(round_id: int) -> None:
    """Do all that is due of a round: its steps, and the pieces of work between them."""
    while advance_round(round_id) or do_pieces(round_id):
        pass


def do_pieces(round_id: int) -> int:
    """Do every piece of work that is planned; returns how many."""
    with transaction() as session:
        planned = session.scalars(select(Piece.id).where(Piece.round_id == round_id, Piece.due_at.is_not(None))).all()
    return sum(do_piece(piece_id) for piece_id in planned)


def take_to(round_id: int, state: State) -> None:
    """Take a round with manifests as far as `state`, by the deadlines that lead there and the work in between.

    SEALED is where operators without funds wait; with them a round goes on to ESCROWED at once. FAILED is where a round
    without any manifest ends.
    """
    stage_of = {
        State.SEALING: "seal_at",
        State.SEALED: "sealing_deadline",
        State.ESCROWED: "sealing_deadline",
        State.DRAWN: "scheduled_draw_time",
        State.SETTLED: "settle_at",
        State.CLOSED: "close_at",
        State.FAILED: "seal_at",
    }
    if state is State.OPEN:
        return
    if state is State.SEALING:
        move_clock_to(round_id, "seal_at")
        advance_round(round_id)
    else:
        move_clock_to(round_id, stage_of[state])
        work(round_id)
    assert the_round(round_id).state is state


def just_drawn(round_id: int) -> None:
    """Take a round to DRAWN and do nothing after that: its second tabulations are planned and not done."""
    take_to(round_id, State.ESCROWED)
    move_clock_to(round_id, "scheduled_draw_time")
    while the_round(round_id).state is not State.DRAWN:
        if not advance_once(round_id):
            do_pieces(round_id)


def the_round(round_id: int) -> Round:
    """The round as it is now."""
    with transaction() as session:
        return session.get_one(Round, round_id)


def rows(query: str, **values: Any) -> list[tuple[Any, ...]]:
    """Read from the tables."""
    with transaction() as session:
        return [tuple(row) for row in session.execute(text(query), values)]


def balances() -> Mapping[str, int]:
    """Every account and what is on it."""
    return dict(rows("SELECT id, balance FROM ledger_accounts"))
