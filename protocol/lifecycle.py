"""The life of a round: one table, and one pure decision over it.

A round is sold (OPEN), closed and recounted (SEALING), fixed (SEALED), paid for (ESCROWED), drawn
(DRAWN), paid out (SETTLED) and put away (CLOSED); until it is drawn it may also end as FAILED. Work that
goes on *inside* a state (recounting an operator's tickets, matching a shard of them) has rows of its own and
is no state.

The one rule kept here: **every change of state is a row of** ``TRANSITIONS``. The rest of the house looks the
row up and carries it out (the new state, the log entry, the webhooks, in this order) and has no list of its own.
The database refuses the same pairs by a trigger; a test walks every state × every trigger through both.

``decide`` reads a frozen picture of a round and says which trigger is due, if any. It never looks at
a clock or a table: both are its arguments, so each decision can be replayed.

Documented in docs/protocol.md, "The life of a round".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from protocol.errors import Conflict


class State(StrEnum):
    """Where a round is. The values are what the API shows."""

    OPEN = "OPEN"
    SEALING = "SEALING"
    SEALED = "SEALED"
    ESCROWED = "ESCROWED"
    DRAWN = "DRAWN"
    SETTLED = "SETTLED"
    CLOSED = "CLOSED"
    FAILED = "FAILED"


class Trigger(StrEnum):
    """What can happen to a round. The values are how the audit trail names it."""

    OPENED = "opened"
    MANIFEST_ACCEPTED = "manifest_accepted"
    SALES_ENDED = "sales_ended"
    NOBODY_JOINED = "nobody_joined"
    RECOUNT_AGREED = "recount_agreed"
    NOBODY_SEALED = "nobody_sealed"
    ESCROW_COMPLETE = "escrow_complete"
    ESCROW_DEADLINE = "escrow_deadline"
    NOBODY_PAID = "nobody_paid"
    SEED_FIXED = "seed_fixed"
    MATCHING_COMPLETE = "matching_complete"
    TABULATIONS_AGREED = "tabulations_agreed"
    CLOSE_TIME = "close_time"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True)
class Transition:
    """What a trigger does: the next state, the entry in the public log, the webhooks in the order sent.

    ``operator.excluded`` and ``operator.won`` stand for one delivery to each operator concerned, which may
    be none; ``reason`` is the failure reason a FAILED round carries (None: given with the trigger).
    """

    to: State
    webhooks: tuple[str, ...] = ()
    log: str | None = None
    reason: str | None = None


NO_MANIFESTS: Final = "no manifests"
NO_ESCROW: Final = "no escrow"

_ABORT: Final = Transition(State.FAILED, webhooks=("round.failed",))

TRANSITIONS: Final[Mapping[tuple[State | None, Trigger], Transition]] = MappingProxyType(
    {
        (None, Trigger.OPENED): Transition(State.OPEN, ("round.opened",), "ROUND_OPENED"),
        (State.OPEN, Trigger.MANIFEST_ACCEPTED): Transition(State.OPEN, (), "MANIFEST_SUBMITTED"),
        (State.OPEN, Trigger.SALES_ENDED): Transition(State.SEALING, ("round.sealing",)),
        (State.OPEN, Trigger.NOBODY_JOINED): Transition(
            State.FAILED, ("operator.excluded", "round.failed"), reason=NO_MANIFESTS
        ),
        (State.SEALING, Trigger.RECOUNT_AGREED): Transition(
            State.SEALED,
            ("round.sealing_deadline", "operator.excluded", "round.sealed", "round.anchored"),
            "ROUND_SEALED",
        ),
        (State.SEALING, Trigger.NOBODY_SEALED): Transition(
            State.FAILED, ("round.sealing_deadline", "operator.excluded", "round.failed"), reason=NO_MANIFESTS
        ),
        (State.SEALED, Trigger.ESCROW_COMPLETE): Transition(State.ESCROWED, ("round.escrowed",)),
        (State.SEALED, Trigger.ESCROW_DEADLINE): Transition(
            State.ESCROWED, ("operator.excluded", "round.escrow_deadline", "round.escrowed")
        ),
        (State.SEALED, Trigger.NOBODY_PAID): Transition(
            State.FAILED, ("operator.excluded", "round.escrow_deadline", "round.failed"), reason=NO_ESCROW
        ),
        (State.ESCROWED, Trigger.SEED_FIXED): Transition(State.ESCROWED),
        (State.ESCROWED, Trigger.MATCHING_COMPLETE): Transition(
            State.DRAWN, ("round.drawn", "operator.won"), "ROUND_DRAWN"
        ),
        (State.DRAWN, Trigger.TABULATIONS_AGREED): Transition(State.SETTLED, ("round.settled",), "ROUND_SETTLED"),
        (State.SETTLED, Trigger.CLOSE_TIME): Transition(State.CLOSED, ("round.closed",)),
        (State.OPEN, Trigger.ABORTED): _ABORT,
        (State.SEALING, Trigger.ABORTED): _ABORT,
        (State.SEALED, Trigger.ABORTED): _ABORT,
        (State.ESCROWED, Trigger.ABORTED): _ABORT,
    }
)

FINISHED: Final = frozenset({State.SETTLED, State.CLOSED, State.FAILED})
"""States in which a round's money no longer moves: the next round may be sealed on top of it."""

DRAWN_STATES: Final = frozenset({State.DRAWN, State.SETTLED, State.CLOSED})
"""States in which numbers and winners are public."""

SEALED_STATES: Final = frozenset({State.SEALED, State.ESCROWED}) | DRAWN_STATES
"""States in which the ticket set is fixed (a FAILED round may have been sealed too: look at its hashes)."""


class IllegalTransition(Conflict):
    """The trigger has no row for this state."""

    code = "illegal_transition"


def transition(state: State | None, trigger: Trigger) -> Transition:
    """Look up what ``trigger`` does to a round in ``state`` (None: not opened yet).

    :raises IllegalTransition: the table has no such row.
    """
    try:
        return TRANSITIONS[state, trigger]
    except KeyError:
        shown = state.value if state else "not opened"
        raise IllegalTransition(f"a round that is {shown} cannot take {trigger.value}") from None


@dataclass(frozen=True, slots=True)
class Deadlines:
    """When a round's stages end. UTC, never decreasing (``checked`` says so of a new round)."""

    seal_at: datetime
    sealing_deadline: datetime
    escrow_deadline: datetime
    scheduled_draw_time: datetime
    settle_at: datetime
    close_at: datetime


@dataclass(frozen=True, slots=True)
class RoundView:
    """What a decision needs to know of a round, at one moment.

    Counts are of operators: ``manifests`` on record; ``unverified`` of those not recounted yet; ``sealable``
    recounted and in agreement; ``unpaid`` sealed, not excluded and without escrow; ``paid`` with it. ``abort``: an
    admin asked for the round to be ended. ``unassessed``, ``unmatched`` and ``untabulated`` count the pieces of work on
    the worst case, of matching and of second tabulation still to do.
    """

    state: State
    deadlines: Deadlines
    abort: bool
    manifests: int
    unverified: int
    sealable: int
    previous_finished: bool
    paid: int
    unpaid: int
    unassessed: int
    seed_fixed: bool
    unmatched: int
    untabulated: int
    tabulations_agree: bool


def decide(view: RoundView, now: datetime) -> Trigger | None:
    """Which trigger is due for the round at ``now``; None when it has to wait.

    Our own slowness never costs an operator anything: SEALING waits for the last recount and for the round
    before it, however late. A round is not drawn before its worst case is published. One whose tabulations disagree
    stays DRAWN for a human to look at.
    """
    if view.abort and (view.state, Trigger.ABORTED) in TRANSITIONS:
        return Trigger.ABORTED
    at = view.deadlines
    match view.state:
        case State.OPEN if now >= at.seal_at:
            return Trigger.SALES_ENDED if view.manifests else Trigger.NOBODY_JOINED
        case State.SEALING if now >= at.sealing_deadline and not view.unverified and view.previous_finished:
            return Trigger.RECOUNT_AGREED if view.sealable else Trigger.NOBODY_SEALED
        case State.SEALED if not view.unpaid:
            return Trigger.ESCROW_COMPLETE if view.paid else Trigger.NOBODY_PAID
        case State.SEALED if now >= at.escrow_deadline:
            return Trigger.ESCROW_DEADLINE if view.paid else Trigger.NOBODY_PAID
        case State.ESCROWED if now >= at.scheduled_draw_time and not view.unassessed:
            if not view.seed_fixed:
                return Trigger.SEED_FIXED
            return None if view.unmatched else Trigger.MATCHING_COMPLETE
        case State.DRAWN if now >= at.settle_at and not view.untabulated and view.tabulations_agree:
            return Trigger.TABULATIONS_AGREED
        case State.SETTLED if now >= at.close_at:
            return Trigger.CLOSE_TIME
        case _:
            return None


def next_due(view: RoundView) -> datetime | None:
    """When the round next has to be looked at for time's sake alone; None once nothing is timed any more."""
    at = view.deadlines
    due: Mapping[State, datetime] = {
        State.OPEN: at.seal_at,
        State.SEALING: at.sealing_deadline,
        State.SEALED: at.escrow_deadline,
        State.ESCROWED: at.scheduled_draw_time,
        State.DRAWN: at.settle_at,
        State.SETTLED: at.close_at,
    }
    return due.get(view.state)
