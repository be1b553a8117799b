"""What to do after a webhook attempt: nothing more, another one later, or give up.

The rule: decide, don't act. The decision is a value made from the attempt's outcome, the policy and a random
number handed in; someone else writes it down and waits.

Implements docs/protocol.md, section 8 (webhooks).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from protocol.errors import Invalid

ERROR_CLASSES: tuple[str, ...] = (
    "dns",
    "connect",
    "tls",
    "timeout",
    "refused_address",
    "bad_response",
    "no_endpoint",
    "status_1xx",
    "status_2xx",
    "status_3xx",
    "status_4xx",
    "status_5xx",
    "status_other",
    "unknown",
)
"""Why an attempt failed. `status_2xx` is any success other than 200, which alone counts; `refused_address` is
an address we do not call; `bad_response` is an answer that is not HTTP or breaks off; `no_endpoint` means
that the operator has registered no webhook.
"""

SUCCESS = 200


@dataclass(frozen=True)
class Policy:
    """How long to wait and how often to try. Durations in seconds.

    After failed attempt n the wait is `base_seconds` × `factor`^(n−1), up to `jitter` (a fraction of 0..1)
    more or less. A receiver's Retry-After is honoured up to `retry_after_cap`. The default makes attempts at
    0, +30 and +150 s.
    """

    base_seconds: float = 30.0
    factor: float = 4.0
    attempts: int = 3
    jitter: float = 0.2
    retry_after_cap: float = 900.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.base_seconds < 0 or self.factor < 1 or self.retry_after_cap < 0:
            raise Invalid("a retry policy has at least one attempt, no negative wait and a factor from 1")
        if not 0 <= self.jitter <= 1:
            raise Invalid("jitter is a fraction from 0 to 1")


@dataclass(frozen=True)
class Outcome:
    """What came of an attempt: the HTTP status, or None and an `error_class` when no answer came.

    `retry_after` is the receiver's Retry-After in seconds from now, if it sent one.
    """

    status: int | None = None
    error_class: str | None = None
    retry_after: float | None = None

    def __post_init__(self) -> None:
        if self.error_class is not None and self.error_class not in ERROR_CLASSES:
            raise Invalid(f"no such error class: {self.error_class!r}")


@dataclass(frozen=True)
class Delivered:
    """It arrived; nothing is left to do."""


@dataclass(frozen=True)
class RetryIn:
    """Try again after so many seconds."""

    seconds: float


@dataclass(frozen=True)
class GiveUp:
    """That was the last attempt; it failed for this reason (one of ERROR_CLASSES)."""

    error_class: str


Decision = Delivered | RetryIn | GiveUp


def error_class_of(outcome: Outcome) -> str | None:
    """Why the attempt failed (one of ERROR_CLASSES), or None if it did not."""
    if outcome.error_class is not None:
        return outcome.error_class
    if outcome.status == SUCCESS:
        return None
    if outcome.status is None:
        return "unknown"
    family = f"status_{outcome.status // 100}xx"
    return family if family in ERROR_CLASSES else "status_other"


def decide(policy: Policy, attempt: int, outcome: Outcome, jitter: float) -> Decision:
    """What follows attempt number `attempt` (from 1, just made) (docs/protocol.md, section 8).

    `jitter` is a random number of −1..1 that the caller drew; what lies outside is cut off. Raises Invalid
    for an attempt below 1.
    """
    if attempt < 1:
        raise Invalid("attempts are counted from 1")
    error_class = error_class_of(outcome)
    if error_class is None:
        return Delivered()
    if attempt >= policy.attempts:
        return GiveUp(error_class)
    spread = policy.jitter * (max(-1.0, min(1.0, jitter)) if math.isfinite(jitter) else 0.0)
    wait = policy.base_seconds * policy.factor ** (attempt - 1) * (1 + spread)
    # A receiver may ask for more patience than we would have, never for less, and not for ever.
    asked = outcome.retry_after
    if asked is not None and not math.isnan(asked):
        wait = max(wait, min(asked, policy.retry_after_cap))
    return RetryIn(wait)
