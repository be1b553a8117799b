"""What follows a webhook attempt."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import Invalid
from protocol.retry import (
    ERROR_CLASSES,
    Delivered,
    GiveUp,
    Outcome,
    Policy,
    RetryIn,
    decide,
    error_class_of,
)

POLICIES = st.builds(
    Policy,
    base_seconds=st.floats(0, 1_000),
    factor=st.floats(1, 10),
    attempts=st.integers(1, 8),
    jitter=st.floats(0, 1),
    retry_after_cap=st.floats(0, 10_000),
)
OUTCOMES = st.builds(
    Outcome,
    status=st.none() | st.integers(100, 999),
    error_class=st.none() | st.sampled_from(ERROR_CLASSES),
    retry_after=st.none() | st.floats(allow_nan=True, allow_infinity=True),
)
JITTERS = st.floats(-1, 1)
ANY_JITTER = st.floats(allow_nan=True, allow_infinity=True)
EVERY_OUTCOME = [
    *(Outcome(status=status) for status in range(100, 1_000)),
    *(Outcome(error_class=error_class) for error_class in ERROR_CLASSES),
    *(Outcome(status=200, error_class=error_class) for error_class in ERROR_CLASSES),
    Outcome(),
]
NEVER_MIND = 1e-9
"""Floats that are worked out in another order differ by so little."""


def test_attempts_are_made_at_0_30_and_150_seconds() -> None:
    refused = Outcome(status=500)
    assert decide(Policy(), 1, refused, 0.0) == RetryIn(30.0)
    assert decide(Policy(), 2, refused, 0.0) == RetryIn(120.0)
    assert decide(Policy(), 3, refused, 0.0) == GiveUp("status_5xx")


def test_jitter_moves_the_wait_by_up_to_a_fifth() -> None:
    assert decide(Policy(), 1, Outcome(status=500), -1.0) == RetryIn(24.0)
    assert decide(Policy(), 1, Outcome(status=500), 1.0) == RetryIn(36.0)
    assert decide(Policy(), 1, Outcome(status=500), 7.0) == RetryIn(36.0)
    assert decide(Policy(), 1, Outcome(status=500), math.nan) == RetryIn(30.0)


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Outcome(status=200), None),
        (Outcome(status=204), "status_2xx"),
        (Outcome(status=101), "status_1xx"),
        (Outcome(status=302), "status_3xx"),
        (Outcome(status=410), "status_4xx"),
        (Outcome(status=503), "status_5xx"),
        (Outcome(status=999), "status_other"),
        (Outcome(error_class="timeout"), "timeout"),
        (Outcome(status=200, error_class="bad_response"), "bad_response"),
        (Outcome(), "unknown"),
    ],
)
def test_only_200_is_a_success_and_every_failure_has_a_class(outcome: Outcome, expected: str | None) -> None:
    assert error_class_of(outcome) == expected
    assert decide(Policy(), 3, outcome, 0.0) == (GiveUp(expected) if expected else Delivered())


def test_retry_after_lengthens_the_wait_up_to_a_quarter_of_an_hour_and_never_shortens_it() -> None:
    assert decide(Policy(), 1, Outcome(status=429, retry_after=60.0), 0.0) == RetryIn(60.0)
    assert decide(Policy(), 1, Outcome(status=429, retry_after=5.0), 0.0) == RetryIn(30.0)
    assert decide(Policy(), 1, Outcome(status=429, retry_after=86_400.0), 0.0) == RetryIn(900.0)
    assert decide(Policy(), 1, Outcome(status=429, retry_after=-1.0), 0.0) == RetryIn(30.0)
    assert decide(Policy(), 1, Outcome(status=429, retry_after=math.nan), 0.0) == RetryIn(30.0)
    assert decide(Policy(), 3, Outcome(status=429, retry_after=60.0), 0.0) == GiveUp("status_4xx")


def test_what_cannot_be_is_refused() -> None:
    for bad in (
        lambda: Policy(attempts=0),
        lambda: Policy(base_seconds=-1),
        lambda: Policy(factor=0.5),
        lambda: Policy(jitter=1.5),
        lambda: Policy(retry_after_cap=-1),
        lambda: Outcome(error_class="gremlins"),
        lambda: decide(Policy(), 0, Outcome(), 0.0),
    ):
        with pytest.raises(Invalid):
            bad()


@given(POLICIES, st.integers(1, 10), OUTCOMES, ANY_JITTER)
def test_every_outcome_leads_to_one_sound_decision(
    policy: Policy, attempt: int, outcome: Outcome, jitter: float
) -> None:
    """The whole rule, said from the other side: what is so if and only if this is the decision."""
    decision = decide(policy, attempt, outcome, jitter)
    arrived = outcome.status == 200 and outcome.error_class is None
    assert (decision == Delivered()) == arrived
    assert isinstance(decision, GiveUp) == (not arrived and attempt >= policy.attempts)
    assert isinstance(decision, RetryIn) == (not arrived and attempt < policy.attempts)
    match decision:
        case GiveUp(error_class):
            assert error_class == error_class_of(outcome)
            assert error_class in ERROR_CLASSES
        case RetryIn(seconds):
            plain = policy.base_seconds * policy.factor ** (attempt - 1)
            least, most = (plain * (1 + way * policy.jitter) for way in (-1, 1))
            asked = outcome.retry_after
            if asked is not None and asked > least:  # NaN is greater than nothing.
                patience = min(asked, policy.retry_after_cap)
                assert seconds >= patience
                most = max(most, patience)
            assert math.isfinite(seconds)
            assert least * (1 - NEVER_MIND) <= seconds <= most * (1 + NEVER_MIND)


@given(POLICIES, st.integers(1, 10), ANY_JITTER)
def test_whatever_can_come_of_an_attempt_there_is_a_decision(policy: Policy, attempt: int, jitter: float) -> None:
    """All 900 statuses and every error class, the ones that came with a 200 too: only a plain 200 is an arrival."""
    decisions = [decide(policy, attempt, outcome, jitter) for outcome in EVERY_OUTCOME]
    assert [outcome for outcome, decision in zip(EVERY_OUTCOME, decisions, strict=True) if decision == Delivered()] == [
        Outcome(status=200)
    ]
    others = [decision for decision in decisions if decision != Delivered()]
    if attempt < policy.attempts:
        # Of how long to wait the failure says nothing unless it says Retry-After.
        assert len(set(others)) == 1
        assert isinstance(others[0], RetryIn)
    else:
        assert {decision.error_class for decision in others if isinstance(decision, GiveUp)} == set(ERROR_CLASSES)
        assert all(isinstance(decision, GiveUp) for decision in others)


@given(OUTCOMES, ANY_JITTER)
def test_as_it_is_run_nobody_waits_longer_than_a_quarter_of_an_hour(outcome: Outcome, jitter: float) -> None:
    for attempt, least, most in ((1, 24.0, 36.0), (2, 96.0, 144.0)):
        decision = decide(Policy(), attempt, outcome, jitter)
        if isinstance(decision, RetryIn):
            assert least * (1 - NEVER_MIND) <= decision.seconds <= 900.0
            if not (outcome.retry_after or 0) > least:
                assert decision.seconds <= most * (1 + NEVER_MIND)


@given(POLICIES, JITTERS)
def test_nonsense_in_retry_after_is_as_if_nothing_had_been_said(policy: Policy, jitter: float) -> None:
    plain = decide(policy, 1, Outcome(status=503), jitter)
    for nonsense in (math.nan, -math.inf, -1.0, -1e300, -0.0, 0.0):
        assert decide(policy, 1, Outcome(status=503, retry_after=nonsense), jitter) == plain
    for_ever = decide(policy, 1, Outcome(status=503, retry_after=math.inf), jitter)
    if isinstance(for_ever, RetryIn) and isinstance(plain, RetryIn):
        assert for_ever.seconds == max(plain.seconds, policy.retry_after_cap)


@given(POLICIES, OUTCOMES, st.lists(JITTERS, min_size=8, max_size=8))
def test_a_receiver_that_never_answers_is_given_up_after_exactly_the_attempts(
    policy: Policy, outcome: Outcome, jitters: list[float]
) -> None:
    failed = Outcome(status=None, error_class=outcome.error_class or "connect", retry_after=outcome.retry_after)
    decisions = [decide(policy, attempt, failed, jitters[attempt - 1]) for attempt in range(1, policy.attempts + 1)]
    assert [type(decision) for decision in decisions] == [RetryIn] * (policy.attempts - 1) + [GiveUp]


@given(POLICIES, st.integers(1, 6), st.floats(-1, 1), st.floats(0, 10_000), st.floats(0, 10_000))
def test_asking_for_more_patience_never_gets_less(
    policy: Policy, attempt: int, jitter: float, first: float, second: float
) -> None:
    less, more = sorted((first, second))
    short = decide(policy, attempt, Outcome(status=429, retry_after=less), jitter)
    long = decide(policy, attempt, Outcome(status=429, retry_after=more), jitter)
    if isinstance(short, RetryIn):
        assert isinstance(long, RetryIn)
        assert short.seconds <= long.seconds
