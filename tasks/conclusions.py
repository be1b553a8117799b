"""Writing down what webhook attempts came to: in their rows, in their endpoints' health, in the tallies and in the log.

The one rule kept here: all of a batch is one transaction, so what is counted is what is on record, after any crash.
"""

import logging
from collections import Counter
from typing import Any

from models.endpoints import Health, note_health
from models.leases import Concluded, conclude_some, release_some
from models.session import transaction
from models.tallies import Kind, add, bucket
from tasks.attempts import PutOff, Result

log = logging.getLogger(__name__)


def write_down(results: list[Result]) -> int:
    """Write down what came of some attempts, in one transaction; returns how many counted."""
    concluded = [result for result in results if isinstance(result, Concluded)]
    put_off = [result for result in results if isinstance(result, PutOff)]
    with transaction() as session:
        held = conclude_some(session, concluded)
        for seconds in {result.seconds for result in put_off}:
            release_some(session, (each.leased for each in put_off if each.seconds == seconds), seconds)
        counted = [result for result in concluded if result.leased.id in held]
        note_health(session, _health(counted))
        add(session, _counts(counted, put_off))
    for result in results:
        _tell(result, result.leased.id in held)
    return len(counted)


def _health(concluded: list[Concluded]) -> dict[str, Health]:
    """How each endpoint did, from its attempts in the order in which they ended."""
    found: dict[str, Health] = {}
    for result in concluded:
        before = found.get(result.leased.operator_id, Health(recovered=False, failures=0))
        if result.error_class is None:
            found[result.leased.operator_id] = Health(recovered=True, failures=0)
        elif result.error_class != "no_endpoint":  # Nothing was called, so nothing is known.
            found[result.leased.operator_id] = Health(before.recovered, before.failures + 1)
    return found


def _counts(concluded: list[Concluded], put_off: list[PutOff]) -> Counter[tuple[Kind, str]]:
    counts: Counter[tuple[Kind, str]] = Counter()
    for result in concluded:
        counts[Kind.OUTCOME, result.error_class or "delivered"] += 1
        if result.error_class is not None and result.retry_in_seconds is None:
            counts[Kind.GIVEN_UP, result.error_class] += 1
        if result.peer is not None:
            seconds = result.duration_ms / 1_000
            counts[Kind.SECONDS, bucket(seconds)] += 1
            counts[Kind.SECONDS_SUM, ""] += round(seconds * 1_000_000)
            counts[Kind.CONNECTION, "reused" if result.reused else "new"] += 1
        if result.leased.number == 1:
            counts[Kind.WAIT, bucket(result.leased.waited)] += 1
            counts[Kind.WAIT_SUM, ""] += round(result.leased.waited * 1_000_000)
    if put_off:
        counts[Kind.OUTCOME, "ours"] = len(put_off)
    return counts


def _tell(result: Result, held: bool) -> None:
    leased = result.leased
    about: dict[str, Any] = {
        "delivery": str(leased.id),
        "operator": leased.operator_id,
        "webhook": leased.event,
        "attempt": leased.number,
    }
    if isinstance(result, PutOff):
        log.warning("webhook put off", extra=about | {"why": result.detail, "again_in_seconds": result.seconds})
    elif not held:
        log.warning("webhook attempt came too late to count", extra=about | {"outcome": result.error_class})
    elif result.error_class is None:
        log.info("webhook delivered", extra=about | {"ms": result.duration_ms, "peer": result.peer})
    else:
        log.warning(
            "webhook attempt failed",
            extra=about
            | {
                "why": result.error_class,
                "status": result.status_code,
                "detail": result.detail,
                "ms": result.duration_ms,
                "peer": result.peer,
                "given_up": result.retry_in_seconds is None,
            },
        )
