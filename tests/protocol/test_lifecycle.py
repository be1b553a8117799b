"""The one table of a round's life, and the decision over it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.lifecycle import (
    FINISHED,
    TRANSITIONS,
    Deadlines,
    IllegalTransition,
    RoundView,
    State,
    Trigger,
    decide,
    next_due,
    transition,
)
from protocol.webhook import EVENTS

START = datetime(2026, 1, 1, tzinfo=UTC)
AT = Deadlines(*(START + timedelta(hours=hour) for hour in range(1, 7)))
VIEW = RoundView(
    state=State.OPEN,
    deadlines=AT,
    abort=False,
    manifests=3,
    unverified=0,
    sealable=3,
    previous_finished=True,
    paid=3,
    unpaid=0,
    unassessed=0,
    seed_fixed=True,
    unmatched=0,
    untabulated=0,
    tabulations_agree=True,
)
LATE = START + timedelta(days=1)


@pytest.mark.parametrize(("state", "trigger"), list(product([None, *State], Trigger)))
def test_every_state_takes_the_triggers_of_the_table_and_refuses_the_others(
    state: State | None, trigger: Trigger
) -> None:
    if (state, trigger) in TRANSITIONS:
        assert transition(state, trigger) is TRANSITIONS[state, trigger]
    else:
        with pytest.raises(IllegalTransition, match=trigger.value):
            transition(state, trigger)


def test_every_trigger_and_every_state_is_used() -> None:
    assert {trigger for _, trigger in TRANSITIONS} == set(Trigger)
    assert {step.to for step in TRANSITIONS.values()} == set(State)


def test_every_webhook_of_the_table_is_a_published_event() -> None:
    named = {event for step in TRANSITIONS.values() for event in step.webhooks}
    assert named == set(EVENTS) - {"operator.heartbeat_missed"}


def test_a_drawn_round_can_no_longer_fail() -> None:
    can_fail = {state for (state, trigger), step in TRANSITIONS.items() if step.to is State.FAILED}
    assert can_fail == {State.OPEN, State.SEALING, State.SEALED, State.ESCROWED}


def test_nothing_leaves_a_closed_or_failed_round() -> None:
    assert not [state for state, _ in TRANSITIONS if state in (State.CLOSED, State.FAILED)]


@pytest.mark.parametrize(
    ("changes", "due"),
    [
        ({"state": State.OPEN}, Trigger.SALES_ENDED),
        ({"state": State.OPEN, "manifests": 0}, Trigger.NOBODY_JOINED),
        ({"state": State.SEALING}, Trigger.RECOUNT_AGREED),
        ({"state": State.SEALING, "sealable": 0}, Trigger.NOBODY_SEALED),
        ({"state": State.SEALING, "unverified": 1}, None),
        ({"state": State.SEALING, "previous_finished": False}, None),
        ({"state": State.SEALED}, Trigger.ESCROW_COMPLETE),
        ({"state": State.SEALED, "unpaid": 1}, Trigger.ESCROW_DEADLINE),
        ({"state": State.SEALED, "unpaid": 1, "paid": 0}, Trigger.NOBODY_PAID),
        ({"state": State.ESCROWED, "seed_fixed": False}, Trigger.SEED_FIXED),
        ({"state": State.ESCROWED, "seed_fixed": False, "unassessed": 1}, None),
        ({"state": State.ESCROWED, "unmatched": 1}, None),
        ({"state": State.ESCROWED}, Trigger.MATCHING_COMPLETE),
        ({"state": State.DRAWN}, Trigger.TABULATIONS_AGREED),
        ({"state": State.DRAWN, "untabulated": 1}, None),
        ({"state": State.DRAWN, "tabulations_agree": False}, None),
        ({"state": State.SETTLED}, Trigger.CLOSE_TIME),
        ({"state": State.CLOSED}, None),
        ({"state": State.FAILED}, None),
        ({"state": State.ESCROWED, "abort": True}, Trigger.ABORTED),
        ({"state": State.DRAWN, "abort": True}, Trigger.TABULATIONS_AGREED),
    ],
)
def test_what_is_due_when_every_deadline_is_over(changes: dict[str, object], due: Trigger | None) -> None:
    assert decide(replace(VIEW, **changes), LATE) is due  # type: ignore[arg-type]


def test_nothing_is_due_before_its_time_but_a_complete_escrow_and_an_abort() -> None:
    early = {decide(replace(VIEW, state=state), START) for state in State}
    assert early == {None, Trigger.ESCROW_COMPLETE}
    assert decide(replace(VIEW, abort=True), START) is Trigger.ABORTED


@given(
    state=st.sampled_from(State),
    counts=st.lists(st.integers(0, 3), min_size=8, max_size=8),
    flags=st.lists(st.booleans(), min_size=4, max_size=4),
    hours=st.integers(0, 8),
)
def test_whatever_is_decided_is_in_the_table(state: State, counts: list[int], flags: list[bool], hours: int) -> None:
    view = RoundView(state, AT, flags[0], *counts[:3], flags[1], *counts[3:6], flags[2], *counts[6:], flags[3])
    due = decide(view, START + timedelta(hours=hours))
    assert due is None or (state, due) in TRANSITIONS


def test_every_unfinished_state_has_a_time_to_be_looked_at() -> None:
    timed = {state for state in State if next_due(replace(VIEW, state=state)) is not None}
    assert timed == set(State) - FINISHED | {State.SETTLED}
