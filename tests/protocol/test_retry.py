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
    status=st.none() | st.integers(100, 599),
    error_class=st.none() | st.sampled_from(ERROR_CLASSES),
    retry_after=st.none() | st.floats(allow_nan=True, allow_infinity=True),
)
JITTERS = st.floats(-1, 1)


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


@given(POLICIES, st.integers(1, 10), OUTCOMES, JITTERS)
def test_every_outcome_leads_to_one_sound_decision(
    policy: Policy, attempt: int, outcome: Outcome, jitter: float
) -> None:
    decision = decide(policy, attempt, outcome, jitter)
    match decision:
        case Delivered():
            assert outcome.status == 200
            assert outcome.error_class is None
        case GiveUp(error_class):
            assert attempt >= policy.attempts
            assert error_class in ERROR_CLASSES
        case RetryIn(seconds):
            assert attempt < policy.attempts
            plain = policy.base_seconds * policy.factor ** (attempt - 1)
            assert 0 <= seconds <= max(plain * (1 + policy.jitter) * (1 + 1e-9), policy.retry_after_cap)
            assert seconds >= plain * (1 - policy.jitter) * (1 - 1e-9)


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
